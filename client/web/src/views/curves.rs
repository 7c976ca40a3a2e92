//! Curves of the metrics that a job reports: a chart for each, as places in a field of fixed size.
//!
//! Pure: from what attempts reported to what the template draws. The names are texts of other people.

use std::sync::Arc;

use cohabit_client::types::{JobId, MetricValue, counted};
use cohabit_console::format_number;
use cohabit_console::records::local_time;
use cohabit_console::records::progress::value_text;
use cohabit_console::records::short_name::short_name;
use jiff::tz::TimeZone;

use super::chart_field::{BOTTOM, LEFT, RIGHT, TOP};
use super::curve_path::curve_path;
use super::line;
use crate::cluster::metric_digest::{
    MOST_LATEST, MOST_METRICS, MOST_POINTS, MetricDigest, MetricPoint, thinned,
};
use crate::state::AttemptMetrics;

/// The distance of two marks whose texts do not touch.
const MARK_WIDTH: f64 = 52.0;
/// Names are cut to so many characters.
const LONGEST_NAME: usize = 40;
/// The most names of metrics without a chart.
const MOST_NAMES: usize = 20;

/// All charts of a job.
#[derive(Debug, Default)]
pub(crate) struct Curves {
    pub(crate) charts: Vec<MetricChart>,
    /// The metrics that have no chart.
    pub(crate) others: Option<OtherMetrics>,
    /// Why something is missing.
    pub(crate) problems: Vec<String>,
}

/// The metrics that have no chart.
#[derive(Debug)]
pub(crate) struct OtherMetrics {
    pub(crate) count: String,
    pub(crate) names: String,
    pub(crate) command: String,
}

/// One metric.
#[derive(Debug)]
pub(crate) struct MetricChart {
    pub(crate) name: String,
    pub(crate) last: String,
    pub(crate) is_number: bool,
    /// The least and the largest of its finite values.
    pub(crate) range: Option<(String, String)>,
    pub(crate) reports: String,
    /// What is drawn; nothing if no value is finite.
    pub(crate) drawing: Option<ChartDrawing>,
    /// What is no finite number, in words.
    pub(crate) alarms: Vec<String>,
    /// The latest reports, the last first.
    pub(crate) rows: Vec<ReportRow>,
    pub(crate) rows_of: String,
}

/// A curve in its field.
#[derive(Debug, PartialEq)]
pub(crate) struct ChartDrawing {
    pub(crate) path: String,
    /// Where values that are no finite number were reported, and which.
    pub(crate) marks: Vec<(String, &'static str)>,
    pub(crate) x_name: &'static str,
    /// At the left and at the right.
    pub(crate) x_labels: [String; 2],
    /// A height and its value, the largest first.
    pub(crate) y_labels: [(f64, String); 3],
    /// Everything in one sentence.
    pub(crate) words: String,
}

/// One report of a metric.
#[derive(Debug, PartialEq)]
pub(crate) struct ReportRow {
    pub(crate) attempt: u32,
    pub(crate) step: u64,
    pub(crate) at: String,
    pub(crate) value: String,
    pub(crate) is_number: bool,
}

impl Curves {
    pub(crate) fn new(job: JobId, attempts: &[(u32, Arc<AttemptMetrics>)], zone: &TimeZone) -> Curves {
        let digests = || attempts.iter().map(|(_, it)| &it.digest);
        let drawn = digests().flat_map(|digest| digest.metrics.iter().map(|metric| &metric.name));
        let mut names: Vec<&String> = drawn.chain(digests().flat_map(|digest| &digest.others)).collect();
        names.sort_unstable();
        names.dedup();
        let others = names.split_off(names.len().min(MOST_METRICS));
        let chart = |name: &&String| {
            let parts = attempts.iter().filter_map(|(number, it)| {
                Some((*number, it.digest.metrics.iter().find(|metric| metric.name == **name)?))
            });
            MetricChart::new(name, &parts.collect::<Vec<_>>(), zone)
        };
        let mut problems: Vec<String> =
            attempts.iter().filter_map(|(_, it)| it.problem.as_deref().map(line)).collect();
        problems.dedup();
        Curves {
            charts: names.iter().map(chart).collect(),
            others: (!others.is_empty()).then(|| OtherMetrics::new(job, &others)),
            problems,
        }
    }
}

impl OtherMetrics {
    fn new(job: JobId, others: &[&String]) -> OtherMetrics {
        let names = others.iter().take(MOST_NAMES).map(|name| short_name(name, LONGEST_NAME));
        let mut names = names.collect::<Vec<_>>().join(", ");
        if others.len() > MOST_NAMES {
            names += &format!(" and {} more", others.len() - MOST_NAMES);
        }
        OtherMetrics {
            count: counted(others.len(), "more metric has", "more metrics have"),
            names,
            command: format!("cohabit metrics {job} --plot --metric NAME"),
        }
    }
}

impl MetricChart {
    /// The chart of a metric of these attempts, the earliest first.
    fn new(name: &str, parts: &[(u32, &MetricDigest)], zone: &TimeZone) -> MetricChart {
        let reports: usize = parts.iter().map(|(_, part)| part.reports).sum();
        let last = parts.last().and_then(|(_, part)| part.latest.last()).map(|point| point.value);
        let range = parts.iter().filter_map(|(_, part)| part.range);
        let range = range.reduce(|(least, largest), (low, high)| (least.min(low), largest.max(high)));
        let name = short_name(name, LONGEST_NAME);
        let last_text = last.map_or(String::new(), value_text);
        let runs: Vec<&[MetricPoint]> = parts.iter().map(|(_, part)| part.points.as_slice()).collect();
        let latest = parts.iter().rev().flat_map(|(attempt, part)| {
            part.latest.iter().rev().map(|point| ReportRow::new(*attempt, point, zone))
        });
        let rows: Vec<ReportRow> = latest.take(MOST_LATEST).collect();
        MetricChart {
            drawing: range.and_then(|range| ChartDrawing::new(&name, &last_text, &runs, range)),
            name,
            last: last_text,
            is_number: last.is_none_or(MetricValue::is_finite),
            range: range.map(|(least, largest)| (format_number(least), format_number(largest))),
            reports: counted(reports, "report", "reports"),
            alarms: alarms(parts),
            rows_of: match reports > rows.len() {
                true => format!("The last {} of {reports} values", rows.len()),
                false => counted(reports, "value", "values"),
            },
            rows,
        }
    }
}

/// What is no finite number, by kind.
fn alarms(parts: &[(u32, &MetricDigest)]) -> Vec<String> {
    let mut kinds: Vec<(MetricPoint, usize)> = Vec::new();
    for (point, count) in parts.iter().flat_map(|(_, part)| &part.not_finite) {
        match kinds.iter_mut().find(|(known, _)| known.value == point.value) {
            Some((_, known)) => *known += count,
            None => kinds.push((*point, *count)),
        }
    }
    let words = |(point, count): (MetricPoint, usize)| {
        let more = if count > 1 { format!(", and {} more", count - 1) } else { String::new() };
        format!("{} at step {}{more}", in_words(point.value), point.step)
    };
    kinds.into_iter().map(words).collect()
}

/// What the value is, for people who do not know what `NaN` stands for.
fn in_words(value: MetricValue) -> &'static str {
    match value.0 {
        value if value.is_nan() => "NaN: not a number",
        value if value > 0.0 => "Infinity: too large for a number",
        _ => "-Infinity: too small for a number",
    }
}

/// The text of a mark.
fn mark_text(value: MetricValue) -> &'static str {
    match value.0 {
        value if value.is_nan() => "NaN",
        value if value > 0.0 => "Inf",
        _ => "-Inf",
    }
}

impl ReportRow {
    fn new(attempt: u32, point: &MetricPoint, zone: &TimeZone) -> ReportRow {
        ReportRow {
            attempt,
            step: point.step,
            at: local_time(point.at, zone),
            value: value_text(point.value),
            is_number: point.value.is_finite(),
        }
    }
}

impl ChartDrawing {
    /// The curve through these runs of points, each a piece of its own; none where there is no point. The
    /// range is that of the finite values.
    fn new(name: &str, last: &str, runs: &[&[MetricPoint]], range: (f64, f64)) -> Option<ChartDrawing> {
        let runs = with_few_points(runs);
        let across = Across::of(&runs)?;
        let (low, high) = with_room(range);
        let place = |point: &MetricPoint| {
            let height = fraction(point.value.0, low, high);
            let y = BOTTOM - height * (BOTTOM - TOP);
            point.value.is_finite().then(|| (across.place(point), y))
        };
        // A gap between two attempts.
        let places = runs.iter().flat_map(|run| run.iter().map(place).chain([None]));
        let [first, end] = across.labels();
        let (x_name, least, largest) = (across.name(), format_number(range.0), format_number(range.1));
        Some(ChartDrawing {
            path: curve_path(places),
            marks: marks(&runs, across),
            x_name,
            words: format!(
                "Curve of {name} from {x_name} {first} to {end}: last {last}, least {least}, largest {largest}"
            ),
            x_labels: [first, end],
            y_labels: [
                (TOP, format_number(high)),
                (f64::midpoint(TOP, BOTTOM), format_number(f64::midpoint(low, high))),
                (BOTTOM, format_number(low)),
            ],
        })
    }
}

/// The runs with at most [`MOST_POINTS`] points together, but for short ones.
fn with_few_points(runs: &[&[MetricPoint]]) -> Vec<Vec<MetricPoint>> {
    let all: usize = runs.iter().map(|run| run.len()).sum();
    let most = |run: &[MetricPoint]| match all > MOST_POINTS {
        true => (run.len() * MOST_POINTS / all).max(3),
        false => run.len(),
    };
    runs.iter().map(|run| thinned(run, most(run))).collect()
}

/// Where values that are no finite number lie, as far as their texts do not touch.
fn marks(runs: &[Vec<MetricPoint>], across: Across) -> Vec<(String, &'static str)> {
    let odd = runs.iter().flatten().filter(|point| !point.value.is_finite());
    let mut places: Vec<(f64, &'static str)> =
        odd.map(|point| (across.place(point), mark_text(point.value))).collect();
    places.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut last = f64::NEG_INFINITY;
    places.retain(|(x, _)| {
        let has_room = x - last >= MARK_WIDTH;
        last = if has_room { *x } else { last };
        has_room
    });
    places.into_iter().map(|(x, text)| (format!("{x:.1}"), text)).collect()
}

/// Room on both sides of values that are all the same.
fn with_room((least, largest): (f64, f64)) -> (f64, f64) {
    let room = match least < largest {
        true => 0.0,
        false if least == 0.0 => 0.5,
        false => least.abs() * 0.1,
    };
    ((least - room).max(f64::MIN), (largest + room).min(f64::MAX))
}

/// How far a value is from the low to the high one. Halves: the difference of two values may be too large.
fn fraction(value: f64, low: f64, high: f64) -> f64 {
    let fraction = (value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0);
    if fraction.is_finite() { fraction.clamp(0.0, 1.0) } else { 0.5 }
}

/// What the curve goes over: steps, or time where the steps are all the same.
#[derive(Debug, Clone, Copy)]
enum Across {
    Steps(u64, u64),
    /// In microseconds.
    Time(u64, u64),
}

impl Across {
    /// None without points.
    fn of(runs: &[Vec<MetricPoint>]) -> Option<Across> {
        let ends = |of: fn(&MetricPoint) -> u64| {
            let all = || runs.iter().flatten().map(of);
            Some((all().min()?, all().max()?))
        };
        let (first, last) = ends(|point| point.step)?;
        let (begin, end) = ends(|point| point.at.as_micros())?;
        Some(if first == last && begin < end { Across::Time(begin, end) } else { Across::Steps(first, last) })
    }

    fn place(self, point: &MetricPoint) -> f64 {
        let (at, first, last) = match self {
            Across::Steps(first, last) => (point.step, first, last),
            Across::Time(begin, end) => (point.at.as_micros(), begin, end),
        };
        let passed = at.saturating_sub(first) as f64 / last.saturating_sub(first).max(1) as f64;
        LEFT + passed * (RIGHT - LEFT)
    }

    const fn name(self) -> &'static str {
        match self {
            Across::Steps(..) => "step",
            Across::Time(..) => "time",
        }
    }

    fn labels(self) -> [String; 2] {
        match self {
            Across::Steps(first, last) => [first.to_string(), last.to_string()],
            Across::Time(begin, end) => {
                let span = cohabit_client::types::Span::from_micros(end - begin);
                ["0 s".to_owned(), span.to_string()]
            }
        }
    }
}

#[cfg(test)]
mod tests;
