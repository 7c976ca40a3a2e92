//! The waiting jobs by what they need and by user, first come, first served.
//!
//! Where one job does not fit, no other one fits that needs the same, whoever owns it. So a plan looks only
//! at users that have a job of which there is room, however many jobs wait.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::{Demand, JobId, Time};

use crate::PendingJob;

/// The order of the jobs of one user: the larger priority, then the earlier submission.
pub(super) type TurnKey = (Reverse<i32>, Time, JobId);

/// The jobs of each user that need the same.
pub(super) type DemandClass = BTreeMap<String, BTreeSet<TurnKey>>;

/// All waiting jobs.
#[derive(Debug, Default, Clone)]
pub(super) struct DemandQueues {
    classes: BTreeMap<Demand, DemandClass>,
}

impl DemandQueues {
    pub(super) fn insert(&mut self, user: &str, demand: &Demand, key: TurnKey) {
        let class = self.classes.entry(*demand).or_default();
        class.entry(user.to_owned()).or_default().insert(key);
    }

    pub(super) fn remove(&mut self, user: &str, demand: &Demand, key: TurnKey) {
        let Some(class) = self.classes.get_mut(demand) else { return };
        if let Some(jobs) = class.get_mut(user) {
            jobs.remove(&key);
            if jobs.is_empty() {
                class.remove(user);
            }
        }
        if class.is_empty() {
            self.classes.remove(demand);
        }
    }

    /// The jobs of each class.
    pub(super) fn classes(&self) -> impl Iterator<Item = (&Demand, &DemandClass)> {
        self.classes.iter()
    }
}

/// The key of a job.
pub(super) const fn turn_key(job: &PendingJob) -> TurnKey {
    (Reverse(job.priority), job.submitted_at, job.id)
}
