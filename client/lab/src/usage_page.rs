//! The page of `report --html`: sums over days as a table and charts. It loads nothing from elsewhere.

use cohabit_console::CommandError;
use cohabit_types::{Span, Time, UsageAmounts, UsageReport, UsageReportRow, UsageSums, counted};

use crate::page::chart::{Axis, Curve, count_axis, curves};
use crate::page::html::{self, escape_html, figure};
use crate::page::palette::{self, legend_marker};

/// Seconds of a day.
const DAY: f64 = 86_400.0;
/// The height of a chart, in pixels.
const HEIGHT: u32 = 300;
/// Bars of the chart of rows; more would not be legible.
const MOST_BARS: usize = 30;

/// An amount of a day or a row.
type Amount = fn(&UsageAmounts) -> f64;

/// What the charts show of a day.
const SERIES: [(&str, Amount); 4] =
    [("held", |it| it.held), ("busy", |it| it.busy), ("idle", |it| it.idle), ("lost", |it| it.lost)];

/// Renders the page.
///
/// # Errors
/// If a chart cannot be drawn.
pub fn page(report: &UsageReport) -> Result<String, CommandError> {
    let days = format!("{} to {}", date(report.since), date(last_moment(report)));
    let body = [
        format!("<h1>Use of the cluster, {}</h1>\n{}", escape_html(&days), facts(report)),
        figure(
            "GPUs by day",
            "GPU time of each day per its length, in UTC. Busy is what was measured of it.",
            &format!("{}{}", legend(), by_day(report)?),
        ),
        figure(
            "Who held what",
            "GPU hours held, and the part of them that was busy; the most first.",
            &bars(report),
        ),
        table(report),
    ];
    Ok(html::page(&format!("Use of the cluster, {days}"), &body.concat()))
}

/// A report ends with its last day, not with the moment after it.
fn last_moment(report: &UsageReport) -> Time {
    report.until - Span::from_micros(1)
}

fn date(time: Time) -> String {
    let stamp =
        i64::try_from(time.as_micros()).ok().and_then(|us| jiff::Timestamp::from_microsecond(us).ok());
    stamp.map_or_else(String::new, |stamp| stamp.strftime("%Y-%m-%d").to_string())
}

fn facts(report: &UsageReport) -> String {
    let UsageSums { amounts, waits, .. } = &report.total;
    let span = |span: Option<Span>| span.map_or("-".to_owned(), |span| span.to_string());
    let facts = [
        ("jobs", report.total.ended_jobs().to_string()),
        ("GPU hours held", hours(amounts.held)),
        ("measured", percent(Some(amounts.measured / amounts.held).filter(|it| it.is_finite()))),
        ("efficiency", percent(amounts.efficiency())),
        ("efficiency of sharing", percent(amounts.sharing_efficiency())),
        ("mean wait", span(waits.mean())),
        ("95% waited at most", span(waits.quantile(0.95))),
    ];
    let spans: String = facts
        .iter()
        .map(|(name, fact)| format!("<span>{name} <b>{}</b></span> ", escape_html(fact)))
        .collect();
    format!("<p class=\"facts\">{spans}</p>\n")
}

fn legend() -> String {
    let names = SERIES.iter().enumerate();
    let spans: String =
        names.map(|(place, (name, _))| format!("<span>{}{name}</span>", legend_marker(place))).collect();
    format!("<div class=\"legend\">{spans}</div>\n")
}

/// Mean GPUs of each day; days without jobs are at zero.
fn by_day(report: &UsageReport) -> Result<String, CommandError> {
    let first = report.since.as_secs_f64() / DAY;
    let count = (report.until.as_secs_f64() / DAY - first).ceil().max(1.0);
    let length = |day: f64| (report.until.as_secs_f64() - (first + day) * DAY).clamp(1.0, DAY);
    let mut gpus = vec![[0.0; SERIES.len()]; count as usize];
    for day in &report.days {
        let place = day.start.as_secs_f64() / DAY - first;
        if let Some(values) = gpus.get_mut(place.round() as usize) {
            *values = SERIES.map(|(_, of)| of(&day.amounts) / length(place.round()));
        }
    }
    let most = gpus.iter().flatten().copied().fold(0.0, f64::max);
    let step = (count / 8.0).ceil();
    let x = Axis {
        label: "days since the beginning of the report",
        range: 0.0..count,
        ticks: (0..=8).map(|tick| f64::from(tick) * step).filter(|tick| *tick <= count).collect(),
        write: |day| format!("{day:.0}"),
    };
    let curve = |place: usize| Curve {
        colour: palette::of_series(place),
        points: steps(gpus.iter().map(|values| values[place])),
    };
    curves(&x, &count_axis("GPUs", most), &(0..SERIES.len()).map(curve).collect::<Vec<_>>(), HEIGHT)
}

/// A level line for each day.
fn steps(values: impl Iterator<Item = f64>) -> Vec<(f64, f64)> {
    let of_day = |(day, value): (usize, f64)| [(day as f64, value), (day as f64 + 1.0, value)];
    values.enumerate().flat_map(of_day).collect()
}

/// A bar for each row, as an SVG whose text has the color of the page.
fn bars(report: &UsageReport) -> String {
    let mut rows: Vec<&UsageReportRow> = report.rows.iter().filter(|row| is_finest(row, report)).collect();
    rows.sort_by(|a, b| b.sums.amounts.held.total_cmp(&a.sums.amounts.held));
    rows.truncate(MOST_BARS);
    let most = rows.iter().map(|row| row.sums.amounts.held).fold(f64::MIN_POSITIVE, f64::max);
    let bar = |(place, row): (usize, &&UsageReportRow)| {
        let UsageAmounts { held, busy, .. } = row.sums.amounts;
        let (y, width) = (place * 26, |part: f64| 560.0 * part / most);
        let color = |series| {
            let plotters::style::RGBColor(red, green, blue) = palette::of_series(series);
            format!("#{red:02x}{green:02x}{blue:02x}")
        };
        format!(
            "<text x=\"190\" y=\"{}\" text-anchor=\"end\">{}</text><rect x=\"200\" y=\"{}\" width=\"{:.1}\" \
             height=\"18\" fill=\"{}\" opacity=\"0.45\"/><rect x=\"200\" y=\"{}\" width=\"{:.1}\" height=\"18\" \
             fill=\"{}\"/><text x=\"{:.1}\" y=\"{}\">{} h</text>\n",
            y + 16,
            escape_html(&shown_name(row)),
            y + 3,
            width(held),
            color(0),
            y + 3,
            width(busy),
            color(1),
            206.0 + width(held),
            y + 16,
            hours(held)
        )
    };
    let drawn: String = rows.iter().enumerate().map(bar).collect();
    format!(
        "<svg viewBox=\"0 0 920 {}\" font-size=\"13\" fill=\"currentColor\" role=\"img\">\n{drawn}</svg>",
        rows.len() * 26 + 8
    )
}

/// Whether no other row has a part of this one: a project beside its users would count twice.
fn is_finest(row: &UsageReportRow, report: &UsageReport) -> bool {
    row.user.is_some() || report.rows.iter().all(|other| other.user.is_none() || other.project != row.project)
}

fn shown_name(row: &UsageReportRow) -> String {
    let names = [&row.project, &row.user].into_iter().flatten();
    names.map(String::as_str).collect::<Vec<_>>().join(" / ").chars().take(26).collect()
}

fn table(report: &UsageReport) -> String {
    let headings = [
        "Project",
        "User",
        "Jobs",
        "GPU hours",
        "Busy",
        "Idle",
        "Lost",
        "Efficiency",
        "Mean wait",
        "P95 wait",
        "Sharing",
        "Used",
        "Entitled",
        "Failures",
    ];
    let headings: String = headings.iter().map(|heading| format!("<th>{heading}</th>")).collect();
    let rows: String = report.rows.iter().map(table_row).collect();
    let hint = "Sharing is the work that would take so much time alone, per time held. What is entitled follows from the \
                present weights.";
    format!(
        "<section>\n<h2>{}</h2>\n<p class=\"hint\">{hint}</p>\n<div class=\"wide\"><table><thead><tr>{headings}</tr>\
         </thead><tbody>\n{rows}</tbody></table></div>\n</section>\n",
        counted(report.rows.len(), "row", "rows")
    )
}

fn table_row(row: &UsageReportRow) -> String {
    let (sums, amounts) = (&row.sums, &row.sums.amounts);
    let span = |span: Option<Span>| span.map_or("-".to_owned(), |span| span.to_string());
    let failures: Vec<String> = sums.failures().iter().map(|(how, count)| format!("{count} {how}")).collect();
    let cells = [
        row.user.clone().unwrap_or_else(|| "all".to_owned()),
        sums.ended_jobs().to_string(),
        hours(amounts.held),
        hours(amounts.busy),
        hours(amounts.idle),
        hours(amounts.lost),
        percent(amounts.efficiency()),
        span(sums.waits.mean()),
        span(sums.waits.quantile(0.95)),
        percent(amounts.sharing_efficiency()),
        percent(row.used_part),
        percent(Some(row.entitled_part)),
        failures.join(", "),
    ];
    let cells: String = cells.iter().map(|cell| format!("<td>{}</td>", escape_html(cell))).collect();
    format!("<tr><th>{}</th>{cells}</tr>\n", escape_html(row.project.as_deref().unwrap_or("-")))
}

fn hours(seconds: f64) -> String {
    format!("{:.2}", seconds / 3_600.0)
}

fn percent(part: Option<f64>) -> String {
    part.map_or("-".to_owned(), |part| format!("{:.0}%", 100.0 * part))
}

#[cfg(test)]
mod tests {
    use cohabit_types::UsageDay;

    use super::*;

    fn report() -> UsageReport {
        let amounts =
            UsageAmounts { held: 7_200.0, measured: 7_200.0, busy: 3_600.0, ..UsageAmounts::default() };
        let sums = UsageSums { amounts, ..UsageSums::default() };
        let row = |project: &str, user: Option<&str>| UsageReportRow {
            project: Some(project.to_owned()),
            user: user.map(str::to_owned),
            sums: sums.clone(),
            used_part: Some(1.0),
            entitled_part: 1.0,
        };
        let day = |day: u64| Time::from_micros(day * 86_400_000_000);
        UsageReport {
            since: day(20_000),
            until: day(20_003),
            rows: vec![row("<b>vision</b>", None), row("<b>vision</b>", Some("ada"))],
            total: sums.clone(),
            days: vec![UsageDay { start: day(20_001), amounts }],
        }
    }

    #[test]
    fn the_page_has_charts_and_a_table_and_loads_nothing() {
        let page = page(&report()).unwrap();
        assert_eq!(page.matches("<svg").count(), 2);
        assert!(page.contains("<td>2.00</td>") && page.contains("2024-10-04 to 2024-10-06"), "{page}");
        let links = ["<script", "<link", "src=", "href=", "@import", "url("];
        assert!(links.iter().all(|it| !page.contains(it)), "{page}");
        assert!(!page.contains("<b>vision") && page.contains("&lt;b&gt;vision"), "names are escaped");
    }

    #[test]
    fn a_project_has_no_bar_beside_its_users() {
        let svg = bars(&report());
        assert_eq!(svg.matches("<rect").count(), 2, "held and busy of one user: {svg}");
    }

    #[test]
    fn a_report_without_jobs_is_a_page_too() {
        let (rows, days, total) = (vec![], vec![], UsageSums::default());
        assert!(page(&UsageReport { rows, days, total, ..report() }).unwrap().contains("0 rows"));
    }
}
