//! What the order knows of one job, waiting or running.

use std::sync::Arc;

use cohabit_fair_share::{Line, Party};
use cohabit_types::{Demand, JobId, Time};

use super::beliefs::Evidence;
use super::contexts::JobContexts;
use super::estimates::EstimatedWork;
use super::hazards::Rest;
use crate::{AttainedTime, ClassKey, JobTraits, Placer, Profile};

/// The weight of a job without devices: its order follows from its rest alone.
const LEAST_DEVICES: f64 = 0.001;

/// What is known of a job.
#[derive(Debug, Clone)]
pub(super) struct OrderedJob {
    pub(super) id: JobId,
    /// The jobs of its user with which its turn comes, where users take turns.
    pub(super) line: Line,
    pub(super) priority: i32,
    pub(super) submitted_at: Time,
    pub(super) demand: Demand,
    pub(super) profile: Profile,
    pub(super) class_key: ClassKey,
    pub(super) contexts: JobContexts,
    /// Whether it may be stopped for a more urgent job.
    pub(super) preemptible: bool,
    /// Its time limit in seconds of one attempt, infinite without one.
    pub(super) limit: f64,
    /// What its earlier attempts had.
    pub(super) attained: AttainedTime,
    /// The bins before this one were counted.
    pub(super) counted: usize,
    /// Its work time as estimated at its submission, until it has worked for longer.
    pub(super) estimated: Option<EstimatedWork>,
    /// Its work time by its own report.
    pub(super) reported: ReportedWork,
    /// When it has waited too long, if it holds no devices until then.
    pub(super) patient_until: Time,
}

/// The work time that a job reports, from its first step to its last.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ReportedWork {
    /// It reports none.
    Nothing,
    /// This many seconds in all, by its first report and by its latest.
    Total { first: f64, latest: f64 },
    /// It worked much longer than it had reported: it is no longer believed.
    Refuted,
}

/// How urgent a job is: the smaller, the earlier it goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct JobRank {
    /// Device-seconds.
    pub(super) value: f64,
    /// The rest that it follows from.
    pub(super) rest: Rest,
}

impl OrderedJob {
    /// Its user, where users take turns.
    pub(super) const fn party(&self) -> Party {
        self.line.party
    }

    /// The devices that it takes, at least a small part of one.
    pub(super) fn devices(&self) -> f64 {
        (self.profile.milli as f64 / 1_000.0).max(LEAST_DEVICES)
    }

    /// Work time of earlier attempts from which it continues, in seconds. Only a job that may be stopped has
    /// a checkpoint to continue from.
    pub(super) fn worked(&self) -> f64 {
        if self.preemptible { self.attained.worked.as_secs_f64() } else { 0.0 }
    }

    /// When it has waited too long: time with devices is no waiting.
    pub(super) fn overdue_at(&self) -> Time {
        self.patient_until + self.attained.held
    }

    /// Profiles it on the present cluster. An estimate against which it was held already stays.
    pub(super) fn set_profile(&mut self, placer: &mut impl Placer, traits: &Arc<JobTraits>) {
        self.profile = placer.profile(&self.demand, traits);
        self.class_key = placer.class_key(&self.demand, traits, &self.profile);
        if self.counted == 0 {
            self.estimated = EstimatedWork::of(&self.profile, traits);
        }
    }

    /// The rank by a rest.
    pub(super) fn rank(&self, rest: Rest) -> JobRank {
        let seconds = if self.preemptible { rest.gittins } else { rest.typical };
        JobRank { value: self.devices() * seconds, rest }
    }

    /// What a belief about it is based on, where the belief without its report is based on `evidence`.
    pub(super) const fn evidence(&self, evidence: Evidence) -> Evidence {
        match self.reported {
            ReportedWork::Total { .. } => Evidence::Progress,
            ReportedWork::Nothing | ReportedWork::Refuted => evidence,
        }
    }
}
