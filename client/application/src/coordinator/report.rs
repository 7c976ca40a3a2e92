//! What the record of a runner's job means for the coordinator.

use cohabit_application_core::{RunnerReport, RunnerState};
use cohabit_types::{JobPhase, JobRecord};

/// The exit code of a job whose record tells none.
const UNKNOWN_CODE: i32 = 125;

/// The report of a record.
pub(super) fn report_of(record: &JobRecord) -> RunnerReport {
    let has_ended = record.latest().is_none_or(|attempt| attempt.ended_at.is_some());
    let ended_attempts = record.attempt.saturating_sub(u32::from(!has_ended));
    let state = match record.state.phase() {
        JobPhase::Waiting => RunnerState::Waiting { why: record.reason.clone() },
        JobPhase::Placed => RunnerState::Live,
        JobPhase::Ended => RunnerState::Ended {
            code: record.shell_code().unwrap_or(UNKNOWN_CODE),
            text: format!("job {} {}: {}", record.id, record.state, record.reason),
        },
    };
    RunnerReport { ended_attempts, state }
}
