//! What became of a change to jobs, in sentences.

use cohabit_client::proto::{ChangeResult, JobChange, JobId};

/// One sentence.
pub(crate) fn describe_change_result(change: JobChange, job: JobId, result: &ChangeResult) -> String {
    match result {
        ChangeResult::Done => format!("{} job {job}", past(change)),
        ChangeResult::Already => format!("job {job} is {} already", state(change)),
        ChangeResult::Refused(refusal) => format!("cannot {} job {job}: {}", change.verb(), refusal.message),
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
        JobChange::Cancel => "at its end",
        JobChange::Hold => "held",
        JobChange::Release => "released",
        JobChange::Requeue => "in the queue",
    }
}
