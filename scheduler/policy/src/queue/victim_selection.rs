//! The running jobs that have to stop so that a demand fits, as few as possible of those that are offered.

use std::collections::BTreeMap;

use cohabit_types::{Demand, JobId};

use super::fit_tracker::FitTracker;
use super::releasable_devices::ReleasableDevices;
use crate::{FreeNodes, RunningJob};

/// The jobs that have to stop, as far as they are found.
pub(crate) struct VictimSelection<'f, 'v> {
    fit: FitTracker<'f>,
    releasable: ReleasableDevices,
    tried: usize,
    /// In the order in which they were tried, which is that of their urgency.
    chosen: BTreeMap<usize, &'v RunningJob>,
    /// Jobs whose end helps only if more jobs on their nodes end.
    useless: Vec<(usize, &'v RunningJob)>,
}

impl<'f, 'v> VictimSelection<'f, 'v> {
    pub(crate) fn new(demand: &Demand, free: &FreeNodes<'f>) -> VictimSelection<'f, 'v> {
        VictimSelection {
            fit: FitTracker::new(free.clone(), *demand),
            releasable: ReleasableDevices::new(demand, free),
            tried: 0,
            chosen: BTreeMap::new(),
            useless: Vec::new(),
        }
    }

    /// Whether the demand fits once the chosen jobs have ended.
    pub(crate) const fn fits(&self) -> bool {
        self.fit.fits()
    }

    /// Adds the next job, and with it those whose end helps now.
    pub(crate) fn add(&mut self, job: &'v RunningJob, free: &FreeNodes<'_>) {
        self.releasable.count(&job.placement, free);
        self.useless.push((self.tried, job));
        self.tried += 1;
        if self.releasable.helps(&job.placement, free) {
            for (order, job) in
                self.useless.extract_if(.., |(_, job)| self.releasable.helps(&job.placement, free))
            {
                self.fit.give_back(&job.demand, &job.placement);
                self.chosen.insert(order, job);
            }
        }
    }

    /// Drops the jobs that are not needed, the last added first; `None` if all together are not enough.
    pub(crate) fn drop_needless(mut self) -> Option<(Vec<JobId>, FreeNodes<'f>)> {
        if !self.fit.fits() {
            return None;
        }
        let mut stopped = Vec::new();
        for job in self.chosen.into_values().rev() {
            self.fit.take(&job.demand, &job.placement);
            if !self.fit.fits() {
                self.fit.give_back(&job.demand, &job.placement);
                stopped.push(job.id);
            }
        }
        stopped.reverse();
        Some((stopped, self.fit.into_free()))
    }
}
