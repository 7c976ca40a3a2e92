//! One job, or one member of an array, with its attempts.

use std::collections::BTreeSet;

use cohabit_types::{
    DeviceId, Enforcement, JobEvent, JobId, JobState, NodeId, Outcome, Placement, Progress, ReasonCode,
    Signal, Slowdown, Span, StopReason, Time,
};
use serde::{Deserialize, Serialize};

use crate::rendezvous::RendezvousEndpoint;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) state: JobState,
    /// Why it ended, or why it is pending beyond what can be seen elsewhere.
    pub(crate) reason: ReasonCode,
    /// Earlier jobs whose end it waits for.
    pub(crate) waits_for: BTreeSet<JobId>,
    /// Not before this time.
    pub(crate) not_before: Option<Time>,
    /// Since when it could have run.
    pub(crate) eligible_at: Time,
    pub(crate) attempts: Vec<Attempt>,
    /// Attempts that failed by their own fault since it was last queued by a user.
    pub(crate) failures: u32,
    /// Attempts that ended by no fault of theirs: with their node or device, or by a neighbour.
    pub(crate) node_failures: u32,
    /// The attempt from which on it has its GPU alone, whatever memory was predicted for it.
    #[serde(default)]
    pub(crate) alone_from: Option<u32>,
    pub(crate) exit_code: Option<i32>,
    pub(crate) signal: Option<Signal>,
    pub(crate) ended_at: Option<Time>,
    pub(crate) story: Vec<JobEvent>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Attempt {
    /// From 1.
    pub(crate) number: u32,
    pub(crate) placement: Placement,
    /// Where its ranks meet.
    #[serde(default)]
    pub(crate) meeting_point: Option<RendezvousEndpoint>,
    pub(crate) started_at: Time,
    /// How long the policy expected it to run there.
    #[serde(default)]
    pub(crate) expected: Option<Span>,
    /// What its neighbours were predicted to cost it when it was placed.
    #[serde(default)]
    pub(crate) slowdown: Option<Slowdown>,
    pub(crate) ended_at: Option<Time>,
    /// Why the head stops it.
    pub(crate) stopping: Option<StopReason>,
    /// Why a worker says that it stopped a rank of it.
    pub(crate) stopped: Option<StopReason>,
    pub(crate) ranks: Vec<Rank>,
    /// The first rank that ended badly, in time.
    pub(crate) first_failure: Option<u32>,
    /// The last that was heard of it.
    pub(crate) progress: Option<Progress>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Rank {
    pub(crate) node: NodeId,
    /// The node's name then.
    pub(crate) node_name: String,
    pub(crate) devices: Vec<DeviceId>,
    pub(crate) phase: RankPhase,
    /// Whether its limits on a shared device are enforced, once that is known.
    #[serde(default)]
    pub(crate) enforcement: Option<Enforcement>,
    /// Whether its job is held to the cores and the host memory that it claims, if it claims any.
    #[serde(default)]
    pub(crate) host_limits: Option<Enforcement>,
    /// As whom it runs, where its user has no account on the node.
    #[serde(default)]
    pub(crate) private_uid: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RankPhase {
    /// The worker was, or will be, told to start it.
    Ordered,
    /// The worker says that it runs.
    Running,
    /// It ended, or was given up.
    Ended(Outcome),
}

impl Rank {
    pub(crate) fn is_live(&self) -> bool {
        !matches!(self.phase, RankPhase::Ended(_))
    }

    pub(crate) fn outcome(&self) -> Option<&Outcome> {
        match &self.phase {
            RankPhase::Ended(outcome) => Some(outcome),
            RankPhase::Ordered | RankPhase::Running => None,
        }
    }
}

impl Attempt {
    pub(crate) fn is_live(&self) -> bool {
        self.ended_at.is_none()
    }

    /// Nodes on which ranks of it still live, each once.
    pub(crate) fn live_nodes(&self) -> BTreeSet<NodeId> {
        self.ranks.iter().filter(|rank| rank.is_live()).map(|rank| rank.node).collect()
    }

    /// How the first rank ended that ended badly.
    pub(crate) fn first_failed_outcome(&self) -> Option<&Outcome> {
        self.first_failure.and_then(|rank| self.ranks.get(rank as usize)?.outcome())
    }

    /// Why it was stopped, as far as that explains its end: a worker saw it, or the head will have it so
    /// anyway.
    pub(crate) fn effective_stop(&self) -> Option<StopReason> {
        match (self.stopped, self.stopping) {
            // The gang broke because of it.
            (Some(theirs), Some(StopReason::GangBroken)) if device_fault(theirs).is_some() => Some(theirs),
            (Some(_), Some(ours)) => Some(ours),
            (Some(theirs), None) => Some(theirs),
            (None, Some(StopReason::Requeued)) => Some(StopReason::Requeued),
            (None, Some(ours))
                if self.ranks.iter().any(|rank| !rank.outcome().is_some_and(Outcome::succeeded)) =>
            {
                Some(ours)
            }
            (None, _) => None,
        }
    }
}

/// Whose fault it is that a worker stopped a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultOrigin {
    /// The job's own.
    Own,
    /// Another job's, the device's or nobody's.
    Other,
}

/// Whose fault it is, where a worker stopped a rank for what befell its device.
pub(crate) const fn device_fault(why: StopReason) -> Option<FaultOrigin> {
    match why {
        StopReason::MpsFault | StopReason::GpuMemory => Some(FaultOrigin::Own),
        StopReason::MpsFaultVictim | StopReason::DeviceLost | StopReason::Unenforced => {
            Some(FaultOrigin::Other)
        }
        StopReason::Cancelled
        | StopReason::TimeLimit
        | StopReason::Requeued
        | StopReason::GangBroken
        | StopReason::Preempted
        | StopReason::Superseded
        | StopReason::Orphaned => None,
    }
}

impl Job {
    pub(crate) fn new(state: JobState, eligible_at: Time) -> Job {
        Job {
            state,
            reason: ReasonCode::WaitingForTurn,
            waits_for: BTreeSet::new(),
            not_before: None,
            eligible_at,
            attempts: Vec::new(),
            failures: 0,
            node_failures: 0,
            alone_from: None,
            exit_code: None,
            signal: None,
            ended_at: None,
            story: Vec::new(),
        }
    }

    pub(crate) fn live_attempt(&self) -> Option<&Attempt> {
        self.attempts.last().filter(|attempt| attempt.is_live())
    }

    pub(crate) fn live_attempt_mut(&mut self) -> Option<&mut Attempt> {
        self.attempts.last_mut().filter(|attempt| attempt.is_live())
    }

    /// Whether its last attempt had to make room for another job.
    pub(crate) fn was_preempted(&self) -> bool {
        self.attempts.last().is_some_and(|attempt| attempt.stopping == Some(StopReason::Preempted))
    }

    /// Whether nothing but room keeps it waiting.
    pub(crate) fn is_eligible(&self, now: Time) -> bool {
        let due = self.not_before.is_none_or(|at| at <= now);
        self.state == JobState::Pending && self.waits_for.is_empty() && due
    }
}
