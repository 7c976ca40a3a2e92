//! Entries for the tests of this crate.

use cohabit_client::types::{
    FeedEntry, FeedEvent, FeedJob, FeedKind, JobId, JobState, ReasonCode, Span, Time,
};

/// So many seconds after the first of January 2026.
pub(crate) fn at(secs: u64) -> Time {
    Time::from_micros(1_767_225_600_000_000) + Span::from_secs(secs)
}

/// An entry of this number.
pub(crate) fn entry(number: u64, event: FeedEvent) -> FeedEntry {
    FeedEntry { number, event }
}

/// The failure of a job of ada.
pub(crate) fn ended(job: u64) -> FeedEvent {
    let job = FeedJob {
        id: JobId::new(job),
        name: "train".into(),
        user: "ada".into(),
        state: JobState::Failed,
        reason_code: ReasonCode::ExitCode,
        reason: "it exited with code 3".into(),
        attempt: 1,
        exit_code: Some(3),
        signal: None,
        nodes: vec!["box".into()],
        array: None,
        submitted_at: at(1),
        started_at: Some(at(5)),
        ended_at: Some(at(10)),
        requests: Vec::new(),
    };
    let text = job.reason.clone();
    FeedEvent { at: at(10), kind: FeedKind::Fail, job: Some(job), node: None, device: None, text }
}

/// The loss of a node.
pub(crate) fn node_lost() -> FeedEvent {
    FeedEvent {
        at: at(10),
        kind: FeedKind::NodeLost,
        job: None,
        node: Some("box".into()),
        device: None,
        text: "nothing was heard of its worker for 5 min 0 s".into(),
    }
}
