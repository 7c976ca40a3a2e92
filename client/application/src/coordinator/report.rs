//! What the record of a runner's job means for the coordinator.

use cohabit_application_core::{RunnerReport, RunnerShortage, RunnerState};
use cohabit_types::{GpuRequest, JobPhase, JobRecord, ReasonCode};

/// The exit code of a job whose record tells none.
const UNKNOWN_CODE: i32 = 125;

/// The report of a record.
pub(super) fn report_of(record: &JobRecord) -> RunnerReport {
    let has_ended = record.latest().is_none_or(|attempt| attempt.ended_at.is_some());
    let ended_attempts = record.attempt.saturating_sub(u32::from(!has_ended));
    let state = match record.state.phase() {
        JobPhase::Waiting => {
            let shortage = shortage_of(record);
            RunnerState::Waiting { why: record.reason.clone(), shortage }
        }
        JobPhase::Placed => RunnerState::Live,
        JobPhase::Ended => RunnerState::Ended {
            code: record.shell_code().unwrap_or(UNKNOWN_CODE),
            text: format!("job {} {}: {}", record.id, record.state, record.reason),
        },
    };
    RunnerReport { ended_attempts, state }
}

/// What a job waits for, if others of its application may hold that. Who waits behind others in the queue
/// will need what it claims.
fn shortage_of(record: &JobRecord) -> Option<RunnerShortage> {
    let is_any = |codes: &[ReasonCode]| codes.contains(&record.reason_code);
    let claims_gpus = record.demand.gpus != GpuRequest::Whole(0);
    let lacks_gpus = is_any(&[ReasonCode::WaitingForDevices, ReasonCode::WaitingForMemory]);
    let is_behind = is_any(&[ReasonCode::WaitingForTurn, ReasonCode::WaitingForVirtualTurn]);
    if lacks_gpus || (is_behind && claims_gpus) {
        Some(RunnerShortage::Gpus)
    } else if is_behind || is_any(&[ReasonCode::WaitingForHost]) {
        Some(RunnerShortage::Host)
    } else if is_any(&[ReasonCode::WaitingForUserLimit]) {
        Some(RunnerShortage::Jobs)
    } else {
        None
    }
}
