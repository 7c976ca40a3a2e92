//! What is kept of the metrics of an attempt: as many points as a chart can show, and the figures of all.
//!
//! A series has up to 2048 reports of 64 metrics, and every tab of every job would hold one.

use cohabit_client::types::{MetricSeries, MetricValue, Time};

/// Metrics that are kept, the first by name; of the others, the names.
pub(crate) const MOST_METRICS: usize = 12;
/// Points of one metric: a chart is about so many pixels wide.
pub(crate) const MOST_POINTS: usize = 240;
/// The latest reports of one metric that are kept as they are.
pub(crate) const MOST_LATEST: usize = 50;

/// What one attempt has reported.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct SeriesDigest {
    /// By name.
    pub(crate) metrics: Vec<MetricDigest>,
    /// The names of the others, in their order.
    pub(crate) others: Vec<String>,
}

/// What one attempt has reported of one metric.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MetricDigest {
    pub(crate) name: String,
    /// Reports that the worker keeps.
    pub(crate) reports: usize,
    /// At most [`MOST_POINTS`] of them, the first first.
    pub(crate) points: Vec<MetricPoint>,
    /// The last [`MOST_LATEST`] of them.
    pub(crate) latest: Vec<MetricPoint>,
    /// The least and the largest of the finite ones.
    pub(crate) range: Option<(f64, f64)>,
    /// Those that are no finite number: the first of each kind, and how many of it there are.
    pub(crate) not_finite: Vec<(MetricPoint, usize)>,
}

/// One report of one metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct MetricPoint {
    pub(crate) step: u64,
    pub(crate) at: Time,
    pub(crate) value: MetricValue,
}

impl SeriesDigest {
    pub(crate) fn of(series: &MetricSeries) -> SeriesDigest {
        let mut columns: Vec<(&String, usize)> = series.names.iter().zip(0..).collect();
        columns.sort_unstable();
        let digests = columns.iter().filter_map(|(name, column)| MetricDigest::of(series, name, *column));
        let mut metrics: Vec<MetricDigest> = digests.take(MOST_METRICS + 1).collect();
        let Some(first_other) = metrics.get(MOST_METRICS).map(|other| other.name.clone()) else {
            return SeriesDigest { metrics, others: Vec::new() };
        };
        metrics.truncate(MOST_METRICS);
        let others = columns.iter().filter(|(name, _)| **name >= first_other);
        SeriesDigest { metrics, others: others.map(|(name, _)| (*name).clone()).collect() }
    }
}

impl MetricDigest {
    /// None if nothing was reported in this column.
    fn of(series: &MetricSeries, name: &str, column: usize) -> Option<MetricDigest> {
        let rows = series.rows.iter();
        let points = rows.filter_map(|row| {
            let value = (*row.values.get(column)?)?;
            Some(MetricPoint { step: row.step, at: row.at, value })
        });
        let points: Vec<MetricPoint> = points.collect();
        if points.is_empty() {
            return None;
        }
        let mut not_finite: Vec<(MetricPoint, usize)> = Vec::new();
        for point in points.iter().filter(|point| !point.value.is_finite()) {
            match not_finite.iter_mut().find(|(known, _)| known.value == point.value) {
                Some((_, count)) => *count += 1,
                None => not_finite.push((*point, 1)),
            }
        }
        Some(MetricDigest {
            name: name.to_owned(),
            reports: points.len(),
            range: range(&points),
            latest: points[points.len().saturating_sub(MOST_LATEST)..].to_vec(),
            points: thinned(&points, MOST_POINTS),
            not_finite,
        })
    }
}

/// The least and the largest finite value.
pub(crate) fn range(points: &[MetricPoint]) -> Option<(f64, f64)> {
    let finite = points.iter().map(|point| point.value).filter(|value| value.is_finite());
    finite
        .map(|value| (value.0, value.0))
        .reduce(|(least, largest), (value, _)| (least.min(value), largest.max(value)))
}

/// At most so many of the points, in their order. Of points beside each other the least, the largest and one
/// that is no finite number stay: peaks and what people look for are not lost.
pub(crate) fn thinned(points: &[MetricPoint], most: usize) -> Vec<MetricPoint> {
    if points.len() <= most {
        return points.to_vec();
    }
    let together = points.len().div_ceil((most / 3).max(1));
    points.chunks(together).flat_map(kept).collect()
}

/// The points of a stretch that stay.
fn kept(stretch: &[MetricPoint]) -> Vec<MetricPoint> {
    let finite = || stretch.iter().enumerate().filter(|(_, point)| point.value.is_finite());
    let by_value = |a: &(usize, &MetricPoint), b: &(usize, &MetricPoint)| a.1.value.0.total_cmp(&b.1.value.0);
    let odd = stretch.iter().position(|point| !point.value.is_finite());
    let extremes = [finite().min_by(by_value), finite().max_by(by_value)];
    let mut places: Vec<usize> = extremes.into_iter().flatten().map(|(at, _)| at).chain(odd).collect();
    places.sort_unstable();
    places.dedup();
    places.into_iter().map(|at| stretch[at]).collect()
}

#[cfg(test)]
mod tests {
    use cohabit_client::types::MetricRow;

    use super::*;

    fn points(values: impl IntoIterator<Item = f64>) -> Vec<MetricPoint> {
        let point = |(value, step)| MetricPoint { step, at: Time::EPOCH, value: MetricValue(value) };
        values.into_iter().zip(1..).map(point).collect()
    }

    fn series(names: &[&str], rows: &[&[Option<f64>]]) -> MetricSeries {
        let row = |(values, step): (&&[Option<f64>], u64)| MetricRow {
            step,
            at: Time::EPOCH,
            values: values.iter().map(|value| value.map(MetricValue)).collect(),
        };
        let names = names.iter().map(|&name| name.to_owned()).collect();
        MetricSeries { names, rows: rows.iter().zip(1..).map(row).collect(), thinning: 1 }
    }

    #[test]
    fn peaks_and_what_is_no_number_stay_among_many_points() {
        let mut many = points((0..5_000).map(|number| f64::from(number % 10)));
        many[1_234].value = MetricValue(1e6);
        many[2_345].value = MetricValue(-1e6);
        many[3_456].value = MetricValue(f64::NAN);
        let few = thinned(&many, MOST_POINTS);
        assert!(few.len() <= MOST_POINTS && few.len() > MOST_POINTS / 3, "{}", few.len());
        assert!(few.is_sorted_by_key(|point| point.step));
        for step in [1_235, 2_346, 3_457] {
            assert!(few.iter().any(|point| point.step == step), "{step}");
        }
        assert_eq!(thinned(&many[..MOST_POINTS], MOST_POINTS), many[..MOST_POINTS]);
        assert_eq!(thinned(&many, 1).len(), 3, "three of one stretch");
    }

    #[test]
    fn figures_are_those_of_all_reports() {
        let rows: [&[Option<f64>]; 5] =
            [&[Some(2.0)], &[None], &[Some(f64::NAN)], &[Some(-1.0)], &[Some(f64::NAN)]];
        let digest = SeriesDigest::of(&series(&["loss"], &rows));
        let loss = &digest.metrics[0];
        assert_eq!((loss.reports, loss.range), (4, Some((-1.0, 2.0))));
        let odd: Vec<(u64, usize)> =
            loss.not_finite.iter().map(|(point, count)| (point.step, *count)).collect();
        assert_eq!(odd, [(3, 2)]);
        assert_eq!(loss.latest.iter().map(|point| point.step).collect::<Vec<_>>(), [1, 3, 4, 5]);
        assert_eq!(range(&points([f64::NAN, f64::INFINITY])), None);
    }

    #[test]
    fn the_first_metrics_by_name_are_kept_and_the_others_named() {
        let names: Vec<String> = (0..30).rev().map(|number| format!("m{number:02}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let digest = SeriesDigest::of(&series(&names, &[&[Some(1.0); 30]]));
        let kept: Vec<&str> = digest.metrics.iter().map(|metric| metric.name.as_str()).collect();
        assert_eq!((kept.len(), kept[0], kept[11]), (MOST_METRICS, "m00", "m11"));
        assert_eq!((digest.others.len(), digest.others[0].as_str()), (18, "m12"));
        assert_eq!(SeriesDigest::of(&MetricSeries::default()), SeriesDigest::default());
        // A row may be shorter than the names say.
        assert!(SeriesDigest::of(&series(&["loss", "lr"], &[&[]])).metrics.is_empty());
    }
}
