//! The results of changes to jobs, in sentences.

use cohabit_client::types::{ChangeResult, JobChange, JobId};
use cohabit_console::printable_line;

/// Describes the result of a change to one job.
pub(crate) fn describe_change_result(change: JobChange, job: JobId, result: &ChangeResult) -> String {
    match result {
        ChangeResult::Done => format!("{} job {job}", past(change)),
        ChangeResult::Already => format!("Job {job} {} already", state(change)),
        ChangeResult::Refused(refusal) => {
            format!("cannot {} job {job}: {}", change.verb(), printable_line(&refusal.message))
        }
    }
}

const fn past(change: JobChange) -> &'static str {
    match change {
        JobChange::Cancel => "Cancelled",
        JobChange::Hold => "Held",
        JobChange::Release => "Released",
        JobChange::Requeue => "Requeued",
    }
}

const fn state(change: JobChange) -> &'static str {
    match change {
        JobChange::Cancel => "has ended",
        JobChange::Hold => "is held",
        JobChange::Release => "is released",
        JobChange::Requeue => "is queued",
    }
}
