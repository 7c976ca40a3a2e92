//! A record of a job, as a head would send it.

use cohabit_client::types::{Demand, JobId, JobLabels, JobRecord, JobState, ReasonCode, Time};

/// Job 7 in this state; in its first attempt unless it waits.
pub(crate) fn record(state: JobState, revision: u64) -> JobRecord {
    let attempt = u32::from(!matches!(state, JobState::Pending | JobState::Held));
    JobRecord {
        id: JobId::new(7),
        name: "train".into(),
        user: "ada".into(),
        group: None,
        state,
        reason_code: ReasonCode::WaitingForTurn,
        reason: String::new(),
        work: "train".into(),
        shell_command: None,
        demand: Demand::default(),
        priority: 0,
        time_limit: None,
        workdir: "/".into(),
        code: None,
        application: None,
        attempt,
        attempts: Vec::new(),
        exit_code: None,
        signal: None,
        submitted_at: Time::EPOCH,
        started_at: None,
        ended_at: None,
        sharing_with: Vec::new(),
        trained: Default::default(),
        predicted: None,
        slowdown_measured: None,
        progress: None,
        array: None,
        revision,
        labels: JobLabels::default(),
    }
}
