//! The states of a job and the codes of their reasons, in the words of Slurm where it has one.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum JobState {
    /// Waits for its turn, its devices, a time or another job.
    Pending,
    /// Waits for a release.
    Held,
    /// Has an attempt that runs.
    Running,
    /// Its attempt is being stopped.
    Completing,
    /// Exited with code 0.
    Completed,
    /// Failed by itself.
    Failed,
    /// Was cancelled.
    Cancelled,
    /// Reached its time limit.
    Timeout,
    /// Lost its node too often.
    NodeFail,
    /// Was ended because it ran out of memory.
    OutOfMemory,
    /// Lost its devices to another job, and may not be requeued.
    Preempted,
}

/// The three phases of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobPhase {
    /// Holds nothing yet.
    Waiting,
    /// An attempt of it has its place in the cluster.
    Placed,
    /// It has ended, and stays so unless it is requeued.
    Ended,
}

impl JobState {
    /// Every state, in the order of a job's life.
    pub const ALL: [JobState; 11] = [
        JobState::Pending,
        JobState::Held,
        JobState::Running,
        JobState::Completing,
        JobState::Completed,
        JobState::Failed,
        JobState::Cancelled,
        JobState::Timeout,
        JobState::NodeFail,
        JobState::OutOfMemory,
        JobState::Preempted,
    ];

    /// The phase that the state belongs to.
    #[must_use]
    pub const fn phase(self) -> JobPhase {
        match self {
            JobState::Pending | JobState::Held => JobPhase::Waiting,
            JobState::Running | JobState::Completing => JobPhase::Placed,
            JobState::Completed
            | JobState::Failed
            | JobState::Cancelled
            | JobState::Timeout
            | JobState::NodeFail
            | JobState::OutOfMemory
            | JobState::Preempted => JobPhase::Ended,
        }
    }

    /// Whether the job has ended.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self.phase(), JobPhase::Ended)
    }

    /// The state as people and scripts see it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            JobState::Pending => "PENDING",
            JobState::Held => "HELD",
            JobState::Running => "RUNNING",
            JobState::Completing => "COMPLETING",
            JobState::Completed => "COMPLETED",
            JobState::Failed => "FAILED",
            JobState::Cancelled => "CANCELLED",
            JobState::Timeout => "TIMEOUT",
            JobState::NodeFail => "NODE_FAIL",
            JobState::OutOfMemory => "OUT_OF_MEMORY",
            JobState::Preempted => "PREEMPTED",
        }
    }
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl FromStr for JobState {
    type Err = String;
    fn from_str(text: &str) -> Result<JobState, String> {
        let wanted = text.to_ascii_uppercase().replace('-', "_");
        let words = || JobState::ALL.map(JobState::word).join(", ");
        JobState::ALL
            .into_iter()
            .find(|state| state.word() == wanted)
            .ok_or_else(|| format!("'{text}' is not a state: use one of {}", words()))
    }
}

/// Why a job is in its state, for programs; a sentence for people stands beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasonCode {
    /// Nothing stands in the way: its turn comes with the next plan.
    WaitingForTurn,
    /// No worker is connected.
    WaitingForNodes,
    /// No node has enough free devices.
    WaitingForDevices,
    /// No device has enough free memory.
    WaitingForMemory,
    /// No node has enough free cores or host memory.
    WaitingForHost,
    /// An earlier job has to end first.
    WaitingForDependency,
    /// Its start time is in the future.
    WaitingForBegin,
    /// Pauses before the next attempt.
    WaitingForRetry,
    /// As many members of its array run as may.
    WaitingForArrayLimit,
    /// As many jobs of its user run as may.
    WaitingForUserLimit,
    /// A job with a larger claim to the next free devices goes first.
    WaitingForVirtualTurn,
    /// Its user, or an admin, holds it.
    HeldByUser,
    /// Runs.
    Running,
    /// Is being stopped.
    Stopping,
    /// Exited with code 0.
    Completed,
    /// Exited with another code.
    ExitCode,
    /// A signal ended it.
    Signalled,
    /// Could not be started on the worker.
    CouldNotStart,
    /// There is no such command on the worker.
    CommandNotFound,
    /// The command may not be executed.
    NotExecutable,
    /// The working directory is missing on the worker.
    WorkdirMissing,
    /// Its user, or an admin, cancelled it.
    CancelledByUser,
    /// Ran for as long as it may.
    TimeLimit,
    /// Its node was lost.
    NodeLost,
    /// Its executor vanished.
    ExecutorLost,
    /// A job it depends on ended in the wrong way.
    DependencyFailed,
    /// The GPU had no memory left for it.
    GpuOom,
    /// Another client of the same MPS server brought it down.
    MpsFaultVictim,
    /// Its own fault on the GPU brought the MPS server down.
    MpsFault,
    /// Its device does not answer any more.
    DeviceLost,
    /// Its limits on a shared device could not be enforced, and it insists on that.
    SharingUnenforced,
    /// Took more host memory than it had claimed.
    MemoryLimit,
    /// Its node had no memory left for it.
    Oom,
    /// It failed alone on its GPU after its faults had broken MPS servers.
    HeldAfterFaults,
    /// The root job of its application ended, or runs anew.
    ApplicationEnded,
    /// Reported no step for longer than its stall timeout, too often.
    Stalled,
    /// Interactive, and did nothing for longer than `idle-stop` of the head.
    Idle,
}

impl ReasonCode {
    /// The code as scripts see it.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            ReasonCode::WaitingForTurn => "waiting_for_turn",
            ReasonCode::WaitingForNodes => "waiting_for_nodes",
            ReasonCode::WaitingForDevices => "waiting_for_devices",
            ReasonCode::WaitingForMemory => "waiting_for_memory",
            ReasonCode::WaitingForHost => "waiting_for_host",
            ReasonCode::WaitingForDependency => "waiting_for_dependency",
            ReasonCode::WaitingForBegin => "waiting_for_begin",
            ReasonCode::WaitingForRetry => "waiting_for_retry",
            ReasonCode::WaitingForArrayLimit => "waiting_for_array_limit",
            ReasonCode::WaitingForUserLimit => "waiting_for_user_limit",
            ReasonCode::WaitingForVirtualTurn => "waiting_for_virtual_turn",
            ReasonCode::HeldByUser => "held_by_user",
            ReasonCode::Running => "running",
            ReasonCode::Stopping => "stopping",
            ReasonCode::Completed => "completed",
            ReasonCode::ExitCode => "exit_code",
            ReasonCode::Signalled => "signalled",
            ReasonCode::CouldNotStart => "could_not_start",
            ReasonCode::CommandNotFound => "command_not_found",
            ReasonCode::NotExecutable => "not_executable",
            ReasonCode::WorkdirMissing => "workdir_missing",
            ReasonCode::CancelledByUser => "cancelled_by_user",
            ReasonCode::TimeLimit => "time_limit",
            ReasonCode::NodeLost => "node_lost",
            ReasonCode::ExecutorLost => "executor_lost",
            ReasonCode::DependencyFailed => "dependency_failed",
            ReasonCode::GpuOom => "gpu_oom",
            ReasonCode::MpsFaultVictim => "mps_fault_victim",
            ReasonCode::MpsFault => "mps_fault",
            ReasonCode::DeviceLost => "device_lost",
            ReasonCode::SharingUnenforced => "sharing_unenforced",
            ReasonCode::MemoryLimit => "memory_limit",
            ReasonCode::Oom => "oom",
            ReasonCode::HeldAfterFaults => "held_after_faults",
            ReasonCode::ApplicationEnded => "application_ended",
            ReasonCode::Stalled => "stalled",
            ReasonCode::Idle => "idle",
        }
    }
}

impl fmt::Display for ReasonCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_json_agree() {
        for state in JobState::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.word());
            assert_eq!(state.word().parse(), Ok(state));
        }
        assert_eq!(serde_json::to_value(ReasonCode::GpuOom).unwrap(), ReasonCode::GpuOom.code());
    }
}
