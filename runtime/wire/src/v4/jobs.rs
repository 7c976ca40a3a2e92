//! Records and histories of jobs as clients of protocol 4 know them, and the reasons in them. Frozen: not a
//! field may change.

use cohabit_types::{
    self as types, ArraySummary, AttemptId, Bytes, Cause, DeviceId, Enforcement, JobId, JobState, Outcome,
    Progress, RankId, RankRecord, Share, Signal, Slowdown, Span, Time, TrainingSpec,
};
use serde::{Deserialize, Serialize};

use super::demand::Demand;
use super::predictions::JobPrediction;

/// The record of a job, an array as a whole, or a member.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobRecord {
    /// Which job.
    pub id: JobId,
    /// Its name.
    pub name: String,
    /// Who submitted it.
    pub user: String,
    /// Its group of recurring jobs.
    pub group: Option<String>,
    /// Its state.
    pub state: JobState,
    /// Why, for programs.
    pub reason_code: ReasonCode,
    /// Why, for people.
    pub reason: String,
    /// The command as typed.
    pub work: String,
    /// What it needs.
    pub demand: Demand,
    /// Its priority.
    pub priority: i32,
    /// How long an attempt may run.
    pub time_limit: Option<Span>,
    /// The directory it starts in.
    pub workdir: String,
    /// The number of the latest attempt; 0 before the first.
    pub attempt: u32,
    /// Every attempt, the oldest first.
    pub attempts: Vec<AttemptRecord>,
    /// How it exited, once it did: the first code that is not 0 among its ranks.
    pub exit_code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<Signal>,
    /// When it was submitted.
    pub submitted_at: Time,
    /// When its latest attempt was placed.
    pub started_at: Option<Time>,
    /// When it ended.
    pub ended_at: Option<Time>,
    /// Other jobs on the same devices now.
    pub sharing_with: Vec<JobId>,
    /// What its specification says of the training.
    pub trained: TrainingSpec,
    /// What was predicted at submission, corrected by its own progress.
    pub predicted: Option<JobPrediction>,
    /// Its slowdown factor beside its present neighbors, as far as jobs like these were measured beside each
    /// other.
    pub slowdown_measured: Option<Slowdown>,
    /// Its progress.
    pub progress: Option<Progress>,
    /// Its members, if it is an array as a whole.
    pub array: Option<ArraySummary>,
    /// Grows with every change that a watcher should see.
    pub revision: u64,
}

/// One try to run a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptRecord {
    /// From 1.
    pub attempt: u32,
    /// When it was placed.
    pub started_at: Time,
    /// When its last rank ended.
    pub ended_at: Option<Time>,
    /// Why it was stopped, if it was.
    pub stopped: Option<StopReason>,
    /// Its ranks.
    pub ranks: Vec<RankRecord>,
}

/// One thing that happened to a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobEvent {
    /// When, by the head's clock.
    pub at: Time,
    /// Its cause.
    pub cause: Cause,
    /// What happened.
    pub kind: JobEventKind,
}

/// What happened to a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum JobEventKind {
    /// It was submitted.
    Submitted,
    /// It was put on hold.
    Held,
    /// It was released.
    Released,
    /// An attempt was placed.
    Placed {
        /// Which attempt.
        attempt: AttemptId,
        /// Names of the nodes.
        nodes: Vec<String>,
        /// All devices.
        devices: Vec<DeviceId>,
        /// How much of each.
        share: Share,
        /// Time since it could first have run.
        waited: Span,
        /// Why the policy chose so.
        why: String,
    },
    /// A rank runs.
    Started(RankId),
    /// It is known whether the limits of a rank that shares its device are enforced.
    Shares {
        /// Which rank.
        rank: RankId,
        /// Whether they are.
        enforcement: Enforcement,
    },
    /// A rank runs as a user of its own, for the account of its job does not exist on the node.
    PrivateUser {
        /// Which rank.
        rank: RankId,
        /// Name of the account.
        account: String,
        /// Number of the user that it runs as.
        uid: u32,
    },
    /// The attempt is being stopped.
    Stopping(AttemptId, StopReason),
    /// A rank ended.
    RankEnded {
        /// Which rank.
        rank: RankId,
        /// How.
        outcome: Outcome,
    },
    /// The worker that holds the attempt cannot be reached.
    NodeUnreachable {
        /// Its name.
        node: String,
        /// After this long its attempts are given up.
        lost_after: Span,
    },
    /// The worker came back, and the attempt still runs.
    Adopted(AttemptId),
    /// The attempt was given up with its node.
    AttemptLost {
        /// Which attempt.
        attempt: AttemptId,
        /// Why.
        detail: String,
    },
    /// It waits for another attempt.
    Requeued {
        /// The attempt that ended.
        attempt: AttemptId,
        /// Pause before the next.
        pause: Span,
        /// Failures that counted so far.
        failures: u32,
        /// Failures that may count.
        limit: u32,
        /// What ended that attempt, if it was stopped.
        why: Option<StopReason>,
    },
    /// A report of an attempt that is over was dropped.
    StaleReport(RankId),
    /// An action of a plan no longer fitted and was dropped.
    PlanDropped(String),
    /// It ended.
    Ended {
        /// How.
        state: JobState,
        /// Why.
        reason: ReasonCode,
    },
    /// The prediction of its memory is discarded.
    Distrusted {
        /// The attempt from which on it has its GPU alone.
        attempt: AttemptId,
        /// What had been predicted.
        predicted: Bytes,
        /// The attempt that may have failed for that; without one, no GPU is left that has so much.
        failed: Option<AttemptId>,
    },
}

/// A page of jobs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ListPage {
    /// Newest last, without their attempts.
    pub jobs: Vec<JobRecord>,
    /// Whether there are more after the last of them.
    pub more: bool,
}

/// Why a job is in its state, for programs; a sentence for people stands beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
}

/// Why an attempt is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StopReason {
    /// Its user, or an admin, cancelled the job.
    Cancelled,
    /// It ran for as long as it may.
    TimeLimit,
    /// Its user, or an admin, wants it started anew.
    Requeued,
    /// Another rank of the attempt ended badly, or was lost.
    GangBroken,
    /// The policy gives its devices to another job.
    Preempted,
    /// The head no longer knows this attempt, or has started another.
    Superseded,
    /// The worker lost the head for longer than `orphan-grace`.
    Orphaned,
    /// Its own fault broke the MPS server of its device.
    MpsFault,
    /// Another client broke the MPS server of its device.
    MpsFaultVictim,
    /// It used more GPU memory than its limit, which only the memory watchdog could enforce.
    GpuMemory,
    /// Its device does not answer any more.
    DeviceLost,
    /// It shares only where its limits are enforced, and they turned out not to be.
    Unenforced,
}

impl From<types::JobRecord> for JobRecord {
    fn from(record: types::JobRecord) -> JobRecord {
        JobRecord {
            id: record.id,
            name: record.name,
            user: record.user,
            group: record.group,
            state: record.state,
            reason_code: record.reason_code.into(),
            reason: record.reason,
            work: record.work,
            demand: record.demand.into(),
            priority: record.priority,
            time_limit: record.time_limit,
            workdir: record.workdir,
            attempt: record.attempt,
            attempts: record.attempts.into_iter().map(Into::into).collect(),
            exit_code: record.exit_code,
            signal: record.signal,
            submitted_at: record.submitted_at,
            started_at: record.started_at,
            ended_at: record.ended_at,
            sharing_with: record.sharing_with,
            trained: record.trained,
            predicted: record.predicted.map(Into::into),
            slowdown_measured: record.slowdown_measured,
            progress: record.progress,
            array: record.array,
            revision: record.revision,
        }
    }
}

impl From<types::AttemptRecord> for AttemptRecord {
    fn from(record: types::AttemptRecord) -> AttemptRecord {
        let types::AttemptRecord { attempt, started_at, ended_at, stopped, ranks, host: _, idle: _ } = record;
        AttemptRecord { attempt, started_at, ended_at, stopped: stopped.map(Into::into), ranks }
    }
}

impl From<types::ListPage> for ListPage {
    fn from(page: types::ListPage) -> ListPage {
        ListPage { jobs: page.jobs.into_iter().map(Into::into).collect(), more: page.more }
    }
}

impl JobEvent {
    /// The event, where protocol 4 has words for it: jobs keep what they hold there, and nothing tells of
    /// stalls, signals or updates.
    #[must_use]
    pub fn of(event: types::JobEvent) -> Option<JobEvent> {
        let types::JobEvent { at, cause, kind } = event;
        Some(JobEvent { at, cause, kind: JobEventKind::of(kind)? })
    }
}

impl JobEventKind {
    fn of(kind: types::JobEventKind) -> Option<JobEventKind> {
        use types::JobEventKind as Kind;
        Some(match kind {
            Kind::Submitted => JobEventKind::Submitted,
            Kind::Held => JobEventKind::Held,
            Kind::Released => JobEventKind::Released,
            Kind::Placed { attempt, nodes, devices, share, waited, why } => {
                JobEventKind::Placed { attempt, nodes, devices, share, waited, why }
            }
            Kind::Started(rank) => JobEventKind::Started(rank),
            Kind::Shares { rank, enforcement } => JobEventKind::Shares { rank, enforcement },
            Kind::PrivateUser { rank, account, uid } => JobEventKind::PrivateUser { rank, account, uid },
            Kind::Stopping(attempt, why) => JobEventKind::Stopping(attempt, why.into()),
            Kind::RankEnded { rank, outcome } => JobEventKind::RankEnded { rank, outcome },
            Kind::NodeUnreachable { node, lost_after } => JobEventKind::NodeUnreachable { node, lost_after },
            Kind::Adopted(attempt) => JobEventKind::Adopted(attempt),
            Kind::AttemptLost { attempt, detail } => JobEventKind::AttemptLost { attempt, detail },
            Kind::Requeued { attempt, pause, failures, limit, why } => {
                JobEventKind::Requeued { attempt, pause, failures, limit, why: why.map(Into::into) }
            }
            Kind::StaleReport(rank) => JobEventKind::StaleReport(rank),
            Kind::PlanDropped(why) => JobEventKind::PlanDropped(why),
            Kind::Allotted { .. }
            | Kind::Stalled { .. }
            | Kind::Idle { .. }
            | Kind::SignalSent { .. }
            | Kind::Checkpoints { .. }
            | Kind::Updated(_) => {
                return None;
            }
            Kind::Ended { state, reason } => JobEventKind::Ended { state, reason: reason.into() },
            Kind::Distrusted { attempt, predicted, failed } => {
                JobEventKind::Distrusted { attempt, predicted, failed }
            }
        })
    }
}

/// A job that waits for other jobs of its user to end waits for its turn. One that ended with its
/// application, or because it did nothing, was cancelled.
impl From<types::ReasonCode> for ReasonCode {
    fn from(code: types::ReasonCode) -> ReasonCode {
        match code {
            types::ReasonCode::WaitingForTurn | types::ReasonCode::WaitingForUserLimit => {
                ReasonCode::WaitingForTurn
            }
            types::ReasonCode::WaitingForNodes => ReasonCode::WaitingForNodes,
            types::ReasonCode::WaitingForDevices => ReasonCode::WaitingForDevices,
            types::ReasonCode::WaitingForMemory => ReasonCode::WaitingForMemory,
            types::ReasonCode::WaitingForHost => ReasonCode::WaitingForHost,
            types::ReasonCode::WaitingForDependency => ReasonCode::WaitingForDependency,
            types::ReasonCode::WaitingForBegin => ReasonCode::WaitingForBegin,
            types::ReasonCode::WaitingForRetry => ReasonCode::WaitingForRetry,
            types::ReasonCode::WaitingForArrayLimit => ReasonCode::WaitingForArrayLimit,
            types::ReasonCode::WaitingForVirtualTurn => ReasonCode::WaitingForVirtualTurn,
            types::ReasonCode::HeldByUser | types::ReasonCode::HeldAfterFaults => ReasonCode::HeldByUser,
            types::ReasonCode::Running => ReasonCode::Running,
            types::ReasonCode::Stopping => ReasonCode::Stopping,
            types::ReasonCode::Completed => ReasonCode::Completed,
            types::ReasonCode::ExitCode => ReasonCode::ExitCode,
            types::ReasonCode::Signalled => ReasonCode::Signalled,
            types::ReasonCode::CouldNotStart => ReasonCode::CouldNotStart,
            types::ReasonCode::CommandNotFound => ReasonCode::CommandNotFound,
            types::ReasonCode::NotExecutable => ReasonCode::NotExecutable,
            types::ReasonCode::WorkdirMissing => ReasonCode::WorkdirMissing,
            types::ReasonCode::CancelledByUser
            | types::ReasonCode::ApplicationEnded
            | types::ReasonCode::Idle => ReasonCode::CancelledByUser,
            types::ReasonCode::TimeLimit | types::ReasonCode::Stalled => ReasonCode::TimeLimit,
            types::ReasonCode::NodeLost => ReasonCode::NodeLost,
            types::ReasonCode::ExecutorLost => ReasonCode::ExecutorLost,
            types::ReasonCode::DependencyFailed => ReasonCode::DependencyFailed,
            types::ReasonCode::GpuOom => ReasonCode::GpuOom,
            types::ReasonCode::MpsFaultVictim => ReasonCode::MpsFaultVictim,
            types::ReasonCode::MpsFault => ReasonCode::MpsFault,
            types::ReasonCode::DeviceLost => ReasonCode::DeviceLost,
            types::ReasonCode::SharingUnenforced => ReasonCode::SharingUnenforced,
            types::ReasonCode::MemoryLimit => ReasonCode::MemoryLimit,
            types::ReasonCode::Oom => ReasonCode::Oom,
        }
    }
}

/// A job that was cancelled by force, with its application, or because it did nothing, was cancelled. To a
/// worker that is an order to stop it with its grace. One that stalled was stopped to be started anew.
impl From<types::StopReason> for StopReason {
    fn from(why: types::StopReason) -> StopReason {
        match why {
            types::StopReason::Cancelled
            | types::StopReason::Killed
            | types::StopReason::ApplicationEnded
            | types::StopReason::Idle => StopReason::Cancelled,
            types::StopReason::TimeLimit => StopReason::TimeLimit,
            types::StopReason::Requeued | types::StopReason::Stalled => StopReason::Requeued,
            types::StopReason::GangBroken => StopReason::GangBroken,
            types::StopReason::Preempted | types::StopReason::Reclaimed => StopReason::Preempted,
            types::StopReason::Superseded => StopReason::Superseded,
            types::StopReason::Orphaned => StopReason::Orphaned,
            types::StopReason::MpsFault => StopReason::MpsFault,
            types::StopReason::MpsFaultVictim => StopReason::MpsFaultVictim,
            types::StopReason::GpuMemory => StopReason::GpuMemory,
            types::StopReason::DeviceLost => StopReason::DeviceLost,
            types::StopReason::Unenforced => StopReason::Unenforced,
        }
    }
}

impl From<StopReason> for types::StopReason {
    fn from(why: StopReason) -> types::StopReason {
        match why {
            StopReason::Cancelled => types::StopReason::Cancelled,
            StopReason::TimeLimit => types::StopReason::TimeLimit,
            StopReason::Requeued => types::StopReason::Requeued,
            StopReason::GangBroken => types::StopReason::GangBroken,
            StopReason::Preempted => types::StopReason::Preempted,
            StopReason::Superseded => types::StopReason::Superseded,
            StopReason::Orphaned => types::StopReason::Orphaned,
            StopReason::MpsFault => types::StopReason::MpsFault,
            StopReason::MpsFaultVictim => types::StopReason::MpsFaultVictim,
            StopReason::GpuMemory => types::StopReason::GpuMemory,
            StopReason::DeviceLost => types::StopReason::DeviceLost,
            StopReason::Unenforced => types::StopReason::Unenforced,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_of_protocol_4_takes_a_job_that_was_killed_for_one_that_was_cancelled() {
        let cancelled =
            [types::StopReason::Killed, types::StopReason::ApplicationEnded, types::StopReason::Idle];
        assert_eq!(cancelled.map(StopReason::from), [StopReason::Cancelled; 3]);
        assert_eq!(StopReason::from(types::StopReason::Stalled), StopReason::Requeued);
        assert_eq!(StopReason::from(types::StopReason::Reclaimed), StopReason::Preempted);
        let newer = [&cancelled[..], &[types::StopReason::Stalled, types::StopReason::Reclaimed]].concat();
        for why in types::StopReason::ALL.into_iter().filter(|why| !newer.contains(why)) {
            assert_eq!(types::StopReason::from(StopReason::from(why)), why);
        }
    }
}
