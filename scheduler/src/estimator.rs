//! What is expected of a job when it is submitted: what an estimator sees, answers and learns from.
//!
//! An estimate is frozen into the submission, so a replay needs no estimator.

use cohabit_proto::{Estimate, JobSpec, Span};

/// What is known of a job at its submission, and nothing that is learned later.
#[derive(Debug, Clone, PartialEq)]
pub struct Features {
    /// Who submits it.
    pub user: String,
    /// Its group of recurring jobs; its name where it has none.
    pub group: String,
    /// Devices on all nodes together, in thousandths.
    pub devices_milli: u64,
    /// Iterations, where the user knows them.
    pub iterations: Option<u64>,
}

/// A job that ended well, with what it took.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// What was known of it.
    pub features: Features,
    /// How long its last attempt ran.
    pub runtime: Span,
    /// Steps it reported, if it did.
    pub iterations: Option<u64>,
}

/// Expects something of a job.
pub trait Estimator: Send {
    /// What to expect; nothing where there is no ground for it.
    fn estimate(&self, job: &Features) -> Option<Estimate>;

    /// Learns from jobs that ended, the oldest first.
    fn learn(&mut self, done: &[Finished]);
}

impl Features {
    /// The features of a job that this user submits.
    #[must_use]
    pub fn of(user: &str, spec: &JobSpec) -> Features {
        let per_node = u64::from(spec.demand.devices()) * u64::from(spec.demand.share().0);
        Features {
            user: user.to_owned(),
            group: spec.group.clone().unwrap_or_else(|| spec.name.clone()),
            devices_milli: per_node * u64::from(spec.demand.nodes),
            iterations: spec.iterations.or_else(|| spec.model.as_ref()?.total_iterations()),
        }
    }
}

/// Expects nothing: what a head without predictors uses.
#[derive(Debug, Default, Clone, Copy)]
pub struct NoEstimates;

impl Estimator for NoEstimates {
    fn estimate(&self, _: &Features) -> Option<Estimate> {
        None
    }

    fn learn(&mut self, _: &[Finished]) {}
}
