//! The result of an evaluation.

use cohabit_predict::Accuracy;

use super::device_spans::DeviceSpan;
use super::job_result::JobResult;
use super::metrics::EvaluationMetrics;
use super::series::Series;

/// The result of an evaluation.
#[derive(Debug, Clone, PartialEq)]
pub struct EvaluationResult {
    /// The metrics.
    pub metrics: EvaluationMetrics,
    /// Every job, in the order of submission.
    pub jobs: Vec<JobResult>,
    /// Queue length and busy devices over time.
    pub series: Series,
    /// Which jobs held the first devices and when.
    pub spans: Vec<DeviceSpan>,
    /// The accuracy of the estimated run times at the best placement.
    pub estimates: Accuracy,
}
