//! What the jobs of each user that wait only for room would hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_fair_share::wanted;
use cohabit_types::JobId;

use crate::submission::SubmissionState;

/// What the eligible jobs of each user would hold, in thousandths of a GPU.
#[derive(Debug, Default, Clone)]
pub(crate) struct EligibleDemand(BTreeMap<String, u64>);

impl EligibleDemand {
    /// A job is eligible from now on.
    pub(crate) fn add(&mut self, submissions: &BTreeMap<u64, Arc<SubmissionState>>, job: JobId) {
        if let Some(submission) = submissions.get(&job.number) {
            *self.0.entry(submission.user.clone()).or_default() += wanted(&submission.spec.demand);
        }
    }

    /// It is so no more.
    pub(crate) fn remove(&mut self, submissions: &BTreeMap<u64, Arc<SubmissionState>>, job: JobId) {
        let Some(submission) = submissions.get(&job.number) else { return };
        if let Some(demand) = self.0.get_mut(&submission.user) {
            *demand = demand.saturating_sub(wanted(&submission.spec.demand));
            if *demand == 0 {
                self.0.remove(&submission.user);
            }
        }
    }

    pub(crate) fn of(&self, user: &str) -> u64 {
        self.0.get(user).copied().unwrap_or_default()
    }

    /// The users of whom jobs are eligible.
    pub(crate) fn users(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}
