//! Orders of the head to a worker.

use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    ApplicationCredentials, ApplicationPlace, AttemptId, CheckpointSource, DeviceId, HostShare, JobSpec,
    RankId, Rendezvous, Role, Share, Span,
};

/// An order of the head to a worker. An order that names an attempt is fenced by it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Order {
    /// Start these ranks.
    Run(Box<RunOrder>),
    /// Stop all ranks of this attempt here, by the stop sequence of its job; some reasons shorten it.
    Stop {
        /// Which attempt.
        attempt: AttemptId,
        /// Why.
        why: StopReason,
    },
    /// Do not start this attempt, which waits for another one to end. Answered with the ends of its ranks if
    /// they had not begun, and with nothing otherwise.
    Withdraw(AttemptId),
    /// The head has made the end of this rank durable: the worker may forget the rank.
    Acknowledge(RankId),
    /// Change the cores and the host memory that the ranks of this attempt here may use together. Answered
    /// with [`Report::Allotted`](crate::Report::Allotted), unless the attempt has ended; repeated over each
    /// new link until it is answered.
    Allot {
        /// Which attempt.
        attempt: AttemptId,
        /// What they may use from now on.
        host: HostShare,
    },
}

/// Start the ranks of an attempt that fall to this worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunOrder {
    /// The attempt.
    pub attempt: AttemptId,
    /// The job as submitted.
    #[serde(with = "crate::shared")]
    pub spec: Arc<JobSpec>,
    /// Who submitted it.
    pub user: String,
    /// The account on the node as which it runs, where the worker can choose.
    pub account: String,
    /// What its user's token allowed: only an admin's job may run as an account with all rights.
    pub role: Role,
    /// All nodes of the attempt, by address, in the order of node ranks.
    pub nodes: Vec<String>,
    /// How many ranks the attempt has on all nodes together.
    pub world_size: u32,
    /// Where its ranks meet; none if the node of rank 0 has no port to offer.
    pub rendezvous: Option<Rendezvous>,
    /// The ranks to start here.
    pub ranks: Vec<RankRun>,
    /// What the ranks of an application get besides. Neither stored nor logged: the head derives it for each
    /// order that it sends.
    pub application: Option<ApplicationCredentials>,
    /// Where the processes of an application run, if it is a part of one.
    pub place: Option<ApplicationPlace>,
    /// Where the checkpoints of earlier attempts are, if they are kept by workers, and by another one.
    #[serde(default)]
    pub checkpoints: Option<CheckpointSource>,
    /// After how long the worker reports that it does nothing, if its job is interactive and the head stops
    /// such jobs; otherwise it does so after [`IDLE_WARNING`](crate::IDLE_WARNING).
    #[serde(default)]
    pub idle_after: Option<Span>,
    /// What has to end before this attempt begins, if it is ordered in advance.
    #[serde(default)]
    pub after: Option<Predecessor>,
}

/// An attempt on the same worker that has to end before another one begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Predecessor {
    /// Which.
    pub attempt: AttemptId,
    /// For how long the worker waits for that: then, and when their link breaks, it gives back what has not
    /// begun.
    pub within: Span,
}

/// One rank to start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankRun {
    /// Its number in the attempt.
    pub rank: u32,
    /// Its number on this node.
    pub local_rank: u32,
    /// This node's number in the attempt.
    pub node_rank: u32,
    /// Its devices.
    pub devices: Vec<DeviceId>,
    /// How much of each.
    pub share: Share,
}

/// Why an attempt is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
    /// Its user, or an admin, cancelled the job by force: it gets SIGKILL at once.
    Killed,
    /// It is a part of an application whose root job has ended, or runs anew.
    ApplicationEnded,
    /// It reported no step for longer than its stall timeout.
    Stalled,
    /// Its devices are due to somebody else by fair share.
    Reclaimed,
    /// It is interactive and did nothing for longer than `idle-stop` of the head.
    Idle,
}

impl StopReason {
    /// Every reason.
    pub const ALL: [StopReason; 17] = [
        StopReason::Cancelled,
        StopReason::TimeLimit,
        StopReason::Requeued,
        StopReason::GangBroken,
        StopReason::Preempted,
        StopReason::Superseded,
        StopReason::Orphaned,
        StopReason::MpsFault,
        StopReason::MpsFaultVictim,
        StopReason::GpuMemory,
        StopReason::DeviceLost,
        StopReason::Unenforced,
        StopReason::Killed,
        StopReason::ApplicationEnded,
        StopReason::Stalled,
        StopReason::Reclaimed,
        StopReason::Idle,
    ];

    /// Whether an attempt that ends for this reason ends through no doing of its job or its user.
    #[must_use]
    pub const fn is_no_fault_of_the_job(self) -> bool {
        match self {
            StopReason::Preempted
            | StopReason::Reclaimed
            | StopReason::Superseded
            | StopReason::Orphaned
            | StopReason::MpsFaultVictim
            | StopReason::DeviceLost
            | StopReason::Unenforced => true,
            StopReason::Cancelled
            | StopReason::Killed
            | StopReason::ApplicationEnded
            | StopReason::TimeLimit
            | StopReason::Stalled
            | StopReason::Idle
            | StopReason::Requeued
            | StopReason::GangBroken
            | StopReason::MpsFault
            | StopReason::GpuMemory => false,
        }
    }

    /// The word in JSON and in the history.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            StopReason::Cancelled => "cancelled",
            StopReason::TimeLimit => "time_limit",
            StopReason::Requeued => "requeued",
            StopReason::GangBroken => "gang_broken",
            StopReason::Preempted => "preempted",
            StopReason::Superseded => "superseded",
            StopReason::Orphaned => "orphaned",
            StopReason::MpsFault => "mps_fault",
            StopReason::MpsFaultVictim => "mps_fault_victim",
            StopReason::GpuMemory => "gpu_memory",
            StopReason::DeviceLost => "device_lost",
            StopReason::Unenforced => "unenforced",
            StopReason::Killed => "killed",
            StopReason::ApplicationEnded => "application_ended",
            StopReason::Stalled => "stalled",
            StopReason::Reclaimed => "reclaimed",
            StopReason::Idle => "idle",
        }
    }

    /// A clause for people: "was stopped because …".
    #[must_use]
    pub const fn clause(self) -> &'static str {
        match self {
            StopReason::Cancelled => "it was cancelled",
            StopReason::TimeLimit => "it reached its time limit",
            StopReason::Requeued => "it was requeued",
            StopReason::GangBroken => "another rank of the same attempt ended",
            StopReason::Preempted => "its devices were given to another job",
            StopReason::Superseded => "the head had declared it lost",
            StopReason::Orphaned => "its worker could not reach the head for too long",
            StopReason::MpsFault => "its fault on the GPU broke the MPS server",
            StopReason::MpsFaultVictim => "another job's fault broke the MPS server of their GPU",
            StopReason::GpuMemory => "it used more GPU memory than it requested",
            StopReason::DeviceLost => "its GPU no longer responds",
            StopReason::Unenforced => "its limits on the GPU turned out not to be enforced",
            StopReason::Killed => "it was cancelled by force",
            StopReason::ApplicationEnded => "its application ended",
            StopReason::Stalled => "it reported no step for longer than its stall timeout",
            StopReason::Reclaimed => "its devices are due to another user or project",
            StopReason::Idle => "it did nothing for too long",
        }
    }
}

impl FromStr for StopReason {
    type Err = String;
    fn from_str(word: &str) -> Result<StopReason, String> {
        StopReason::ALL
            .into_iter()
            .find(|reason| reason.as_str() == word)
            .ok_or_else(|| format!("'{word}' is not a reason for a stop"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_stop_reasons_are_those_of_their_json() {
        for reason in StopReason::ALL {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
            assert_eq!(reason.as_str().parse(), Ok(reason));
        }
        assert!("TimeLimit".parse::<StopReason>().is_err());
    }
}
