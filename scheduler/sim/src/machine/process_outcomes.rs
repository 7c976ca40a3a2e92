//! What the processes of a machine hold now and have used so far, from outside the cores' books.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::{AttemptId, Outcome, RankId, Time};

use crate::process::RankProcess;
use crate::slowdown_tracker::SharedRunTime;

/// What became of the processes that have ended.
#[derive(Debug, Default)]
pub(crate) struct ProcessOutcomes {
    /// Device time used by attempts, in thousandths of a device times microseconds.
    pub(crate) device_time: BTreeMap<AttemptId, u64>,
    /// How ranks really ended.
    pub(crate) outcomes: BTreeMap<RankId, Outcome>,
    /// Ranks of whose end no disk tells any more, although it was written down.
    pub(crate) forgotten: BTreeSet<RankId>,
    /// Ranks that another one's fault on their GPU brought down.
    pub(crate) victims: BTreeSet<RankId>,
    /// Of those that may have neighbours.
    pub(crate) shared_run_time: SharedRunTime,
}

impl ProcessOutcomes {
    pub(super) fn close(&mut self, now: Time, rank: RankId, process: &RankProcess, outcome: &Outcome) {
        *self.device_time.entry(rank.attempt).or_default() += process.device_time(now);
        self.outcomes.insert(rank, outcome.clone());
        if process.start.spec.demand.may_have_neighbours() {
            self.shared_run_time = self.shared_run_time + process.tenancy.until(now);
        }
    }
}
