//! When it is looked whether something is due to somebody, and what a look asks of running jobs.

use std::collections::BTreeSet;

use cohabit_types::{JobId, Qos, Time};

use crate::{RunPhase, RunningJob};

/// When it is looked again whether something is due to somebody: a look costs much more than most plans.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct NextLook {
    /// Not before.
    pub(super) at: Time,
    /// Then at the latest, even if nothing changes until then.
    pub(super) wake: Option<Time>,
}

impl NextLook {
    pub(super) fn sooner(&mut self, at: Time) {
        self.at = self.at.min(at);
        self.wake = Some(self.wake.map_or(at, |wake| wake.min(at)));
    }
}

/// The running jobs by what a look asks of them.
#[derive(Debug, Default)]
pub(super) struct RunningSets {
    /// Those that may be stopped for others.
    pub(super) stoppable: BTreeSet<JobId>,
    /// Those of them that took what nobody else wanted.
    pub(super) low: BTreeSet<JobId>,
    /// Those of them that do nothing.
    pub(super) idle: BTreeSet<JobId>,
}

impl RunningSets {
    pub(super) fn insert(&mut self, job: &RunningJob) {
        self.remove(job.id);
        match job.phase {
            RunPhase::Stopping => {}
            RunPhase::Running => {
                if job.traits.preemptible && job.traits.qos == Qos::Low {
                    self.low.insert(job.id);
                }
                if job.idle_from.is_some() {
                    self.idle.insert(job.id);
                }
                if job.traits.preemptible || job.idle_from.is_some() {
                    self.stoppable.insert(job.id);
                }
            }
        }
    }

    pub(super) fn remove(&mut self, job: JobId) {
        for set in [&mut self.stoppable, &mut self.low, &mut self.idle] {
            set.remove(&job);
        }
    }
}
