//! How far the work time that was estimated at submission is believed: as far as earlier estimates came true.
//!
//! A context keeps a record of the word of its users and one of its estimator. An estimate that comes true
//! less often than not is ignored: what it knows, the counts of ended jobs know better.

use cohabit_types::Span;

use crate::placement::Profile;
use crate::{EstimateBasis, JobTraits};

/// An estimate comes true if the job works for at least its inverse and at most this many times as long: jobs
/// that share GPUs take longer than alone, and the bins tell no less apart.
pub(super) const TOLERANCE: f64 = 1.5;

/// The least trust at which an estimate counts.
const LEAST_TRUST: f64 = 0.5;

/// The weight of all earlier estimates when one more is counted.
const MEMORY: f64 = 0.95;

/// The weight of the context above, in estimates.
const SHRINKAGE: f64 = 2.0;

/// The shortest work time that is estimated, in seconds.
const SHORTEST: f64 = 1.0;

/// Who estimates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EstimateOrigin {
    /// The user, who states a number of iterations.
    User,
    /// An estimator that learns from ended jobs.
    Estimator,
}

/// The work time of a job, as it was estimated at its submission.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct EstimatedWork {
    pub(super) seconds: f64,
    pub(super) source: EstimateOrigin,
}

/// How many estimates of one source were made, and how many came true. Old ones count less.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Record {
    made: f64,
    came_true: f64,
}

/// The records of one context.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct EstimateRecords {
    user: Record,
    estimator: Record,
}

impl EstimateOrigin {
    /// The source of the estimate of a job of which the user states these iterations, or none.
    pub(super) const fn of(stated_iterations: Option<u64>) -> EstimateOrigin {
        match stated_iterations {
            Some(_) => EstimateOrigin::User,
            None => EstimateOrigin::Estimator,
        }
    }

    /// The trust where no estimate was made before: a user may well know, an estimator must have shown it.
    const fn prior(self) -> f64 {
        match self {
            EstimateOrigin::User => 0.5,
            EstimateOrigin::Estimator => 0.25,
        }
    }
}

impl EstimatedWork {
    /// An estimate of this source.
    pub(super) fn new(work: Span, source: EstimateOrigin) -> EstimatedWork {
        EstimatedWork { seconds: work.as_secs_f64().max(SHORTEST), source }
    }

    /// What a profile expects, where that is no guess.
    pub(super) fn of(profile: &Profile, traits: &JobTraits) -> Option<EstimatedWork> {
        let source = EstimateOrigin::of(traits.iterations);
        (profile.basis == EstimateBasis::Estimate).then(|| EstimatedWork::new(profile.runtime, source))
    }

    /// Whether it comes true for a job that works this long in all, in seconds.
    pub(super) fn comes_true(&self, worked: f64) -> bool {
        worked * TOLERANCE >= self.seconds && !self.is_refuted(worked)
    }

    /// Whether a job that has worked this long, in seconds, takes longer for sure.
    pub(super) fn is_refuted(&self, worked: f64) -> bool {
        worked > self.seconds * TOLERANCE
    }
}

impl Record {
    fn count(&mut self, came_true: bool) {
        self.made = MEMORY * self.made + 1.0;
        self.came_true = MEMORY * self.came_true + f64::from(u8::from(came_true));
    }
}

impl EstimateRecords {
    const fn of(&self, source: EstimateOrigin) -> &Record {
        match source {
            EstimateOrigin::User => &self.user,
            EstimateOrigin::Estimator => &self.estimator,
        }
    }

    /// Counts an estimate of this source.
    pub(super) fn count(&mut self, source: EstimateOrigin, came_true: bool) {
        match source {
            EstimateOrigin::User => self.user.count(came_true),
            EstimateOrigin::Estimator => self.estimator.count(came_true),
        }
    }
}

/// The probability that an estimate of this source comes true, by the records of a job's contexts, the widest
/// first; `None` where that is less likely than not.
pub(super) fn trust<'r>(
    source: EstimateOrigin,
    records: impl Iterator<Item = &'r EstimateRecords>,
) -> Option<f64> {
    let refine = |above: f64, records: &EstimateRecords| {
        let record = records.of(source);
        (record.came_true + SHRINKAGE * above) / (record.made + SHRINKAGE)
    };
    let trust = records.fold(source.prior(), refine);
    (trust >= LEAST_TRUST).then_some(trust)
}
