//! What became of a change to jobs, in sentences.

use cohabit_client::proto::{JobChange, JobId, Verdict};

/// One sentence.
pub(crate) fn verdict(change: JobChange, job: JobId, verdict: &Verdict) -> String {
    match verdict {
        Verdict::Done => format!("{} job {job}", past(change)),
        Verdict::Already => format!("job {job} is {} already", state(change)),
        Verdict::Refused(refusal) => format!("cannot {} job {job}: {}", change.verb(), refusal.message),
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
