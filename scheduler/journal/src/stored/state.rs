//! The states of jobs, and the reasons for them.

use cohabit_types as types;
use serde::{Deserialize, Serialize};

use crate::shape::shape_of;

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::JobState", rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum StoredJobState {
    Pending,
    Held,
    Running,
    Completing,
    Completed,
    Failed,
    Cancelled,
    Timeout,
    NodeFail,
    OutOfMemory,
    Preempted,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::ReasonCode", rename_all = "snake_case")]
pub(crate) enum StoredReasonCode {
    WaitingForTurn,
    WaitingForNodes,
    WaitingForDevices,
    WaitingForMemory,
    WaitingForHost,
    WaitingForDependency,
    WaitingForBegin,
    WaitingForRetry,
    WaitingForArrayLimit,
    WaitingForUserLimit,
    WaitingForVirtualTurn,
    HeldByUser,
    Running,
    Stopping,
    Completed,
    ExitCode,
    Signalled,
    CouldNotStart,
    CommandNotFound,
    NotExecutable,
    WorkdirMissing,
    CancelledByUser,
    TimeLimit,
    NodeLost,
    ExecutorLost,
    DependencyFailed,
    GpuOom,
    MpsFaultVictim,
    MpsFault,
    DeviceLost,
    SharingUnenforced,
    MemoryLimit,
    Oom,
    HeldAfterFaults,
    ApplicationEnded,
    Stalled,
    Idle,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::StopReason", rename_all = "snake_case")]
pub(crate) enum StoredStopReason {
    Cancelled,
    TimeLimit,
    Requeued,
    GangBroken,
    Preempted,
    Superseded,
    Orphaned,
    MpsFault,
    MpsFaultVictim,
    GpuMemory,
    DeviceLost,
    Unenforced,
    Killed,
    ApplicationEnded,
    Stalled,
    Reclaimed,
    Idle,
}

shape_of! {
    StoredJobState => types::JobState,
    StoredReasonCode => types::ReasonCode,
    StoredStopReason => types::StopReason,
}
