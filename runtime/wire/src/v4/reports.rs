//! What workers of protocol 4 report, and what such a head takes. Frozen: not a field may change.

use cohabit_types::{
    self as types, AttemptProgress, ColocationSample, DeviceId, DeviceTelemetry, Enforcement, Outcome,
    Progress, RankId, Time,
};
use serde::{Deserialize, Serialize};

use super::device::Condition;
use super::jobs::StopReason;

/// From worker to head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Report {
    /// The rank's process runs.
    Started {
        /// Which rank.
        rank: RankId,
        /// By the worker's clock.
        at: Time,
    },
    /// The rank ended. Sent again until it is acknowledged.
    Ended {
        /// Which rank.
        rank: RankId,
        /// How.
        outcome: Outcome,
        /// Why it was being stopped, if it was.
        stopped: Option<StopReason>,
        /// The last that was heard of it.
        progress: Option<Progress>,
        /// By the worker's clock.
        at: Time,
    },
    /// The progress of the attempts on this worker: one batch for each heartbeat. Not journaled.
    Progress(Vec<AttemptProgress>),
    /// Whether the limits of a rank that shares its device are enforced. Sent again over each new link.
    Sharing {
        /// Which rank.
        rank: RankId,
        /// Whether they are.
        enforcement: Enforcement,
    },
    /// The rank's user has no account on the node: it runs as this user, which nobody else is. Sent again
    /// over each new link.
    PrivateUser {
        /// Which rank.
        rank: RankId,
        /// The number of that user.
        uid: u32,
    },
    /// The condition of a device changed.
    Condition {
        /// Which device.
        device: DeviceId,
        /// How it is now.
        condition: Condition,
    },
    /// Readings of the GPUs of this worker: one batch each time. Not journaled.
    Telemetry(Vec<DeviceTelemetry>),
    /// Samples of co-located ranks. Not journaled, but kept in the history.
    ColocationSamples(Vec<ColocationSample>),
}

impl From<Report> for types::Report {
    fn from(report: Report) -> types::Report {
        match report {
            Report::Started { rank, at } => types::Report::Started { rank, at },
            Report::Ended { rank, outcome, stopped, progress, at } => types::Report::Ended {
                rank,
                outcome,
                stopped: stopped.map(Into::into),
                progress,
                at,
                usage: Vec::new(),
            },
            Report::Progress(batch) => types::Report::Progress(batch),
            Report::Sharing { rank, enforcement } => types::Report::Sharing { rank, enforcement },
            Report::PrivateUser { rank, uid } => types::Report::PrivateUser { rank, uid },
            Report::Condition { device, condition } => {
                types::Report::Condition { device, condition: condition.into() }
            }
            Report::Telemetry(batch) => types::Report::Telemetry(batch),
            Report::ColocationSamples(batch) => types::Report::ColocationSamples(batch),
        }
    }
}

impl Report {
    /// The report, where protocol 4 has words for it: a head of protocol 4 orders no change of what a running
    /// job holds, so it needs no answer to one, and keeps neither stalls nor signals nor what ranks did with
    /// their GPUs.
    #[must_use]
    pub fn of(report: types::Report) -> Option<Report> {
        Some(match report {
            types::Report::Started { rank, at } => Report::Started { rank, at },
            types::Report::Ended { rank, outcome, stopped, progress, at, usage: _ } => {
                Report::Ended { rank, outcome, stopped: stopped.map(Into::into), progress, at }
            }
            types::Report::Progress(batch) => Report::Progress(batch),
            types::Report::Sharing { rank, enforcement } => Report::Sharing { rank, enforcement },
            types::Report::PrivateUser { rank, uid } => Report::PrivateUser { rank, uid },
            types::Report::Condition { device, condition } => {
                Report::Condition { device, condition: condition.into() }
            }
            types::Report::Telemetry(batch) => Report::Telemetry(batch),
            types::Report::ColocationSamples(batch) => Report::ColocationSamples(batch),
            types::Report::Allotted { .. }
            | types::Report::Stalled { .. }
            | types::Report::SignalSent { .. }
            | types::Report::Usage(_)
            | types::Report::Idle { .. }
            | types::Report::Active(_)
            | types::Report::Checkpoints { .. } => return None,
        })
    }
}
