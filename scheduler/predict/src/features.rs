//! A job as features for the trees: what it states itself, and what was known of similar jobs.
//!
//! Values of other jobs are given as their distance from the anchor, the estimate without a forest, so that a
//! split learned from short jobs holds for long ones too.

use cohabit_policy::JobFeatures;
use cohabit_types::Span;

use crate::cohort::Statistics;
use crate::cohort_statistics::CohortStatistics;
use crate::quantity::Quantity;

/// The number of features.
pub(crate) const FEATURE_COUNT: usize = 52;
/// The index of the anchor.
pub(crate) const ANCHOR_COLUMN: usize = 0;

/// The features of a job.
pub(crate) type FeatureRow = [f32; FEATURE_COUNT];

/// Stands for an unknown count, time or number.
const UNKNOWN: f64 = -1.0;

/// Encodes a job.
pub(crate) fn encode(quantity: Quantity, job: &JobFeatures, past: &CohortStatistics) -> FeatureRow {
    let anchor = past.anchor();
    let mut row = [0.0; FEATURE_COUNT];
    let numbers = std::iter::once(anchor)
        .chain(own(quantity, job))
        .chain([past.user, past.group, past.model].map(code))
        .chain(
            [past.group_devices, past.user, past.shape]
                .into_iter()
                .flat_map(|statistics| full_statistics(statistics, anchor)),
        )
        .chain(
            [past.kind, past.group, past.model, past.all]
                .into_iter()
                .flat_map(|statistics| short_statistics(statistics, anchor)),
        );
    row.iter_mut().zip(numbers).for_each(|(slot, number)| *slot = number as f32);
    row
}

/// The features that the job states itself.
fn own(quantity: Quantity, job: &JobFeatures) -> [f64; 7] {
    let iterations = match quantity {
        Quantity::Runtime => job.iterations,
        // It would be the answer, and jobs that state it are not estimated.
        Quantity::Iterations => None,
    };
    [
        (job.devices_milli as f64).ln_1p(),
        job.hour() as f64,
        job.weekday() as f64,
        amount(job.batch_size),
        amount(iterations),
        job.replicas.len() as f64,
        f64::from(job.replicas.iter().copied().max().unwrap_or(0)),
    ]
}

fn full_statistics(statistics: Option<Statistics>, anchor: f64) -> [f64; 11] {
    let Some(it) = statistics else { return [0.0, UNKNOWN, UNKNOWN, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0] };
    [
        (it.count as f64).ln_1p(),
        log(it.since_last),
        log(it.since_last_submitted),
        it.last - anchor,
        it.last_submitted - anchor,
        it.mean - anchor,
        it.exponential_mean - anchor,
        it.median - anchor,
        it.short_median - anchor,
        it.deviation,
        it.range,
    ]
}

fn short_statistics(statistics: Option<Statistics>, anchor: f64) -> [f64; 2] {
    statistics.map_or([0.0; 2], |it| [(it.count as f64).ln_1p(), it.median - anchor])
}

fn code(statistics: Option<Statistics>) -> f64 {
    statistics.map_or(UNKNOWN, |it| f64::from(it.code))
}

fn amount(count: Option<u64>) -> f64 {
    count.map_or(UNKNOWN, |count| (count as f64).ln_1p())
}

fn log(span: Span) -> f64 {
    span.as_secs_f64().ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_features_is_right() {
        let numbers = 1
            + own(Quantity::Runtime, &JobFeatures::default()).len()
            + 3
            + 3 * full_statistics(None, 0.0).len();
        assert_eq!(numbers + 4 * short_statistics(None, 0.0).len(), FEATURE_COUNT);
    }

    #[test]
    fn stated_iterations_are_hidden_when_iterations_are_estimated() {
        let stated = JobFeatures { iterations: Some(500), ..JobFeatures::default() };
        let unstated = JobFeatures::default();
        let row = |quantity, job| encode(quantity, job, &CohortStatistics::default());
        assert_ne!(row(Quantity::Runtime, &stated), row(Quantity::Runtime, &unstated));
        assert_eq!(row(Quantity::Iterations, &stated), row(Quantity::Iterations, &unstated));
    }
}
