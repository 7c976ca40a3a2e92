//! What the running jobs of each user hold, kept by the changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_types::JobId;

use crate::{JobTraits, ResourceAmounts, RunningJob};

/// What users hold.
#[derive(Debug, Default, Clone)]
pub(super) struct UserHoldings {
    jobs: BTreeMap<JobId, (Arc<JobTraits>, ResourceAmounts)>,
    users: BTreeMap<String, ResourceAmounts>,
}

impl UserHoldings {
    /// A job runs, or holds something else than before. A job that is being stopped holds all until its end.
    pub(super) fn insert(&mut self, job: &RunningJob) {
        self.remove(job.id);
        let held = ResourceAmounts::of_placement(&job.demand, &job.placement);
        let sum = self.users.entry(job.traits.user.clone()).or_default();
        *sum = sum.plus(held);
        self.jobs.insert(job.id, (Arc::clone(&job.traits), held));
    }

    /// A job holds nothing any more.
    pub(super) fn remove(&mut self, job: JobId) {
        let Some((traits, held)) = self.jobs.remove(&job) else { return };
        let Some(sum) = self.users.get_mut(&traits.user) else { return };
        *sum = sum.minus(held);
        if *sum == ResourceAmounts::default() {
            self.users.remove(&traits.user);
        }
    }

    /// What all running jobs of a user hold.
    pub(super) fn of(&self, user: &str) -> ResourceAmounts {
        self.users.get(user).copied().unwrap_or_default()
    }
}
