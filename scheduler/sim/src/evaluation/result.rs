//! What came of an evaluation.

use cohabit_predict::Accuracy;

use super::device_spans::DeviceSpan;
use super::job_result::JobResult;
use super::metrics::Metrics;
use super::series::Series;

/// An evaluation that is over.
#[derive(Debug, Clone, PartialEq)]
pub struct EvaluationResult {
    /// The numbers.
    pub metrics: Metrics,
    /// Every job, in the order of submission.
    pub jobs: Vec<JobResult>,
    /// How long the queue was and how busy the devices were, over time.
    pub series: Series,
    /// Who held the first devices when.
    pub spans: Vec<DeviceSpan>,
    /// How good the estimates were: of the time that a job takes at its best place.
    pub estimates: Accuracy,
}
