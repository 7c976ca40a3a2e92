//! What a list says of a job, in one cell for each.

use cohabit_types::{Demand, GpuRequest, JobPhase, JobRecord, JobState, Slowdown, Span, Time};

use super::progress::{metric_text, progress_text, silence};

/// The run time of the latest attempt.
#[must_use]
pub fn runtime(job: &JobRecord, now: Time) -> Option<Span> {
    Some(job.ended_at.unwrap_or(now).since(job.started_at?))
}

/// Members of an array, progress, or the reason why the job is waiting or ended.
#[must_use]
pub fn detail(job: &JobRecord, now: Time) -> String {
    if let Some(array) = &job.array {
        let held = match array.count(JobState::Held) {
            0 => String::new(),
            held => format!(", {held} held"),
        };
        let ended = format!("{}/{} ended{held}", array.ended(), array.members);
        return if job.state.is_terminal() { job.reason.clone() } else { ended };
    }
    match &job.progress {
        Some(progress) if !job.state.is_terminal() => {
            let parts = [Some(progress_text(progress)), silence(progress, now)];
            parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
        }
        progress => {
            let metric = progress.as_ref().and_then(metric_text).map(|metric| format!("; {metric}"));
            [job.reason.as_str(), &metric.unwrap_or_default()].concat()
        }
    }
}

/// The slowdown of a running job: measured, or else predicted.
#[must_use]
pub fn slowdown(job: &JobRecord) -> Option<Slowdown> {
    let predicted = || job.predicted.as_ref()?.slowdown;
    job.slowdown_measured.or_else(predicted).filter(|_| job.state.phase() == JobPhase::Placed)
}

/// The total of devices on all nodes.
#[must_use]
pub fn gpus(demand: &Demand) -> String {
    match demand.gpus {
        GpuRequest::Part(share) => share.to_string(),
        GpuRequest::Whole(count) => count.saturating_mul(demand.nodes).to_string(),
    }
}
