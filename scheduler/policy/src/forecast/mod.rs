//! What people ask the scheduler: when a job may start, what sharing costs, how long a job runs.
//!
//! Nothing here decides anything; policies read the estimates that jobs got at submission.

mod estimator;
mod past_runs;
mod queue_forecast;
mod run_times;
mod slowdown_reporter;

pub use estimator::{CompletedRun, Estimator, JobFeatures, UserEstimator, work_time};
pub use past_runs::{KnownRunTimes, PastRuns};
pub use queue_forecast::{JobForecast, QueueForecast};
pub use run_times::{RemainingTime, RunTimeDistribution};
pub use slowdown_reporter::{DryRunResult, SlowdownReporter};
