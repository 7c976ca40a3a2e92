//! Samples of the feed: what happened to a job, to an array as a whole, to a node and to a GPU.

use cohabit_types::{
    ArraySummary, DeviceId, FeedEvent, FeedJob, FeedKind, JobId, JobState, NotifyRequest, ReasonCode, Signal,
    Time,
};

/// One event for each kind.
pub(super) fn feed_events() -> Vec<FeedEvent> {
    let at = Time::from_micros;
    let plain = FeedJob {
        id: JobId::new(4),
        name: "train".into(),
        user: "ada".into(),
        state: JobState::Running,
        reason_code: ReasonCode::Running,
        reason: "on box".into(),
        attempt: 1,
        exit_code: None,
        signal: None,
        nodes: vec!["box".into()],
        array: None,
        submitted_at: at(1),
        started_at: None,
        ended_at: None,
        requests: Vec::new(),
    };
    let array = FeedJob {
        state: JobState::Failed,
        reason_code: ReasonCode::Signalled,
        exit_code: Some(137),
        signal: Some(Signal::KILL),
        array: Some(ArraySummary { members: 3, states: [(JobState::Failed, 3)].into() }),
        started_at: Some(at(2)),
        ended_at: Some(at(3)),
        requests: vec![
            NotifyRequest { event: FeedKind::Fail, channel: Some("mail".into()) },
            NotifyRequest { event: FeedKind::End, channel: None },
        ],
        ..plain.clone()
    };
    let of_kind = |kind: FeedKind| {
        let job =
            kind.is_of_job().then(|| if kind == FeedKind::Fail { array.clone() } else { plain.clone() });
        let node = job.is_none().then(|| "box".to_owned());
        let is_gpu = matches!(kind, FeedKind::GpuFenced | FeedKind::GpuBack);
        let device = is_gpu.then(|| DeviceId("GPU-1".into()));
        FeedEvent { at: at(3), kind, job, node, device, text: "why".into() }
    };
    FeedKind::ALL.into_iter().map(of_kind).collect()
}
