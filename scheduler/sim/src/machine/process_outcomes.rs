//! The records of a machine: what its ended processes used and how they really ended.
//!
//! The checkers compare these records with what the head has booked.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::{AttemptId, Outcome, RankId, Time};

use crate::process::RankProcess;
use crate::share_speed::ShareSpeed;
use crate::slowdown_tracker::SharedRunTime;

/// What is recorded of the processes that have ended.
#[derive(Debug, Default)]
pub(crate) struct ProcessOutcomes {
    /// Device time used by each attempt: thousandths of a device, times microseconds.
    pub(crate) device_time: BTreeMap<AttemptId, u64>,
    /// How each rank really ended.
    pub(crate) outcomes: BTreeMap<RankId, Outcome>,
    /// Ranks whose recorded outcome was lost with the disk.
    pub(crate) forgotten: BTreeSet<RankId>,
    /// Ranks that ended because of another rank's fault on their GPU.
    pub(crate) victims: BTreeSet<RankId>,
    /// Ranks that ended well by themselves while their executor was suspended, and had not been told to stop.
    pub(crate) finished_unseen: BTreeSet<RankId>,
    /// Run time of the processes that were allowed to share a device.
    pub(crate) shared_run_time: SharedRunTime,
    /// How fast the processes were with their shares of cores and host memory.
    pub(crate) share_speed: ShareSpeed,
    /// How often the share of running processes was changed.
    pub(crate) allotments: u64,
}

impl ProcessOutcomes {
    /// Records the end of a process and adds up what it used.
    pub(super) fn close(&mut self, now: Time, rank: RankId, process: &RankProcess, outcome: &Outcome) {
        *self.device_time.entry(rank.attempt).or_default() += process.device_time(now);
        self.outcomes.insert(rank, outcome.clone());
        self.share_speed = self.share_speed + process.share_speed_at(now);
        if process.start.spec.demand.may_have_neighbors() {
            self.shared_run_time = self.shared_run_time + process.slowdown.total_at(now);
        }
    }
}
