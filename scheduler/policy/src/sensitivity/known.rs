//! What is known of the sensitivity of jobs: tables that were measured before, and what progress told.

use std::sync::Arc;

use cohabit_types::{Demand, Share, Span, Time};

use super::job_curve::JobCurve;
use super::learned::LearnedSensitivity;
use super::profiles::SensitivityProfiles;
use super::table::SensitivityTable;
use crate::{JobTraits, NodeView, RunningJob, View, ViewChange};

/// A job that reports no progress is given what nobody else has any use for after this time.
const SILENT_AFTER: Span = Span::from_secs(120);

/// What is known of the sensitivity of jobs.
#[derive(Debug, Default, Clone)]
pub(crate) struct KnownSensitivity {
    pub(crate) profiles: Arc<SensitivityProfiles>,
    learned: LearnedSensitivity,
}

impl KnownSensitivity {
    pub(crate) fn learn(&mut self, view: &View, changes: &[ViewChange]) {
        self.learned.learn(view, changes);
    }

    /// How much a job gains by more of a node. What a person has measured counts more than what was learned.
    pub(crate) fn curve(&self, node: &NodeView, demand: &Demand, traits: &JobTraits) -> Option<JobCurve> {
        let table = self.find(traits)?;
        let proportional = node.proportional_share(1, Share::WHOLE);
        Some(JobCurve::new(Arc::clone(table), demand.devices(), proportional))
    }

    fn find(&self, traits: &JobTraits) -> Option<&Arc<SensitivityTable>> {
        self.profiles.find(traits).or_else(|| self.learned.find(traits))
    }

    /// Whether something may be known soon that is not known now.
    pub(crate) fn may_learn(&self, job: &RunningJob, now: Time) -> bool {
        let untried = self.find(&job.traits).is_none() && !self.is_ready_for_trial(job, now);
        untried || self.learned.is_measuring(job.id)
    }

    /// Whether a trial with another share would tell something: the speed with the present one is known, or
    /// will never be.
    pub(crate) fn is_ready_for_trial(&self, job: &RunningJob, now: Time) -> bool {
        self.learned.has_speed(job.id) || now >= job.allotted_at + SILENT_AFTER
    }
}
