//! The jobs of each user that wait: those of a larger priority first, then those that have waited longest.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use cohabit_fair_share::{Line, Party};
use cohabit_types::{Demand, JobId, Qos, Time};

use crate::queue::WaitingDemand;
use crate::{PendingJob, View};

/// The smaller, the earlier.
type Place = (Reverse<i32>, Time, JobId);

/// All jobs that wait.
#[derive(Debug, Default)]
pub(super) struct LongestWaiting {
    /// Those that others may be stopped for: not those of low quality of service.
    by_party: BTreeMap<Party, BTreeSet<Place>>,
    known: BTreeMap<JobId, (Party, Place, Demand)>,
    demand: WaitingDemand,
}

impl LongestWaiting {
    pub(super) fn insert(&mut self, job: &PendingJob, view: &View) {
        self.remove(job.id);
        let party = view.party(&job.traits);
        let place = (Reverse(job.priority), job.eligible_at, job.id);
        if job.traits.qos != Qos::Low {
            self.by_party.entry(party).or_default().insert(place);
        }
        self.demand.add(party, &job.demand);
        self.known.insert(job.id, (party, place, job.demand));
    }

    pub(super) fn remove(&mut self, job: JobId) {
        let Some((party, place, demand)) = self.known.remove(&job) else { return };
        self.demand.remove(party, &demand);
        if let Some(jobs) = self.by_party.get_mut(&party) {
            jobs.remove(&place);
            if jobs.is_empty() {
                self.by_party.remove(&party);
            }
        }
    }

    /// Whether nothing waits for which others may be stopped.
    pub(super) fn is_empty(&self) -> bool {
        self.by_party.is_empty()
    }

    /// The users of whom jobs wait for which others may be stopped.
    pub(super) fn lines(&self) -> impl Iterator<Item = Line> {
        self.by_party.keys().map(|party| Line { party: *party, qos: Qos::Normal })
    }

    /// What the jobs of a user would hold, in thousandths of a GPU.
    pub(super) fn demand_of(&self, party: Party) -> u64 {
        self.demand.of(party)
    }

    /// The jobs of a user, the next one first.
    pub(super) fn of(&self, party: Party) -> impl Iterator<Item = JobId> {
        self.by_party.get(&party).into_iter().flatten().map(|(.., job)| *job)
    }
}
