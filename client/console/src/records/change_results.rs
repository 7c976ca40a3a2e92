//! The results of changes to jobs, in sentences.

use crate::printable_line;
use cohabit_types::{ChangeResult, JobChange, JobId};

/// Describes the result of a change to one job.
#[must_use]
pub fn describe_change_result(change: JobChange, job: JobId, result: &ChangeResult) -> String {
    match result {
        ChangeResult::Done => done(change, job),
        ChangeResult::Already => format!("Job {job} {} already", state(change)),
        ChangeResult::Refused(refusal) => {
            format!("cannot {} job {job}: {}", change.verb(), printable_line(&refusal.message))
        }
    }
}

/// What was done, or is under way.
fn done(change: JobChange, job: JobId) -> String {
    match change {
        JobChange::Cancel => format!("Cancelled job {job}"),
        JobChange::Hold => format!("Held job {job}"),
        JobChange::Release => format!("Released job {job}"),
        JobChange::Requeue => format!("Requeued job {job}"),
        JobChange::Kill => format!("Cancelled job {job} by force"),
        JobChange::Withdraw => format!("Withdrew job {job}"),
    }
}

const fn state(change: JobChange) -> &'static str {
    match change {
        JobChange::Cancel | JobChange::Withdraw => "has ended",
        JobChange::Hold => "is held",
        JobChange::Release => "is released",
        JobChange::Requeue => "is queued",
        JobChange::Kill => "is being ended or has ended",
    }
}
