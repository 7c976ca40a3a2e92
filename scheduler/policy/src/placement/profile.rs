//! What a policy expects of a job on the present cluster: how much it takes, for how long, and what a good
//! placement is worth to it.
//!
//! A profile is made once, when the job becomes pending, from what was frozen at its submission. It does not
//! follow the job's progress.

use std::sync::Arc;

use cohabit_types::{Demand, LaunchMode, Span};

use crate::JobTraits;
use crate::mapping::{Bounds, JobGraph};

/// The runtime of a job about which nothing is known. Zero would let every unknown job jump the queue, and
/// infinity would starve it.
pub const UNKNOWN_RUNTIME: Span = Span::from_secs(3_600);

/// What is expected of a job. Symbols are those of the A-SRPT paper.
#[derive(Debug, Clone)]
pub(crate) struct Profile {
    /// What it takes on all nodes together, in thousandths of a device (`g_i`).
    pub(crate) milli: u64,
    /// Its predicted number of iterations (`n^_i`), where known.
    pub(crate) iterations: Option<u64>,
    /// Its runtime at its best placement (`n^_i * alpha_i^min` where it has a graph and states `n_i`).
    pub(crate) runtime: Span,
    /// What the runtime is based on.
    pub(crate) basis: EstimateBasis,
    /// Its replicas and what they send each other, where its model describes that.
    pub(crate) graph: Option<Arc<JobGraph>>,
    /// The iteration times of the graph at the best and at the worst placement, in seconds.
    pub(crate) bounds: Option<Bounds>,
    /// Who launches its ranks: only where we do can each be put on a chosen device.
    pub(crate) launch: LaunchMode,
}

/// What an expected runtime is based on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EstimateBasis {
    /// An estimate.
    Estimate,
    /// Nothing. It lets policies plan and is never shown to people.
    Guess,
}

impl Profile {
    /// The profile by an estimate alone: every placement is equally good.
    #[must_use]
    pub(crate) fn flat(demand: &Demand, traits: &JobTraits) -> Profile {
        let estimate = traits.estimate.as_ref();
        let runtime = estimate.and_then(|it| it.runtime);
        let basis = if runtime.is_some() { EstimateBasis::Estimate } else { EstimateBasis::Guess };
        let runtime = runtime.unwrap_or(UNKNOWN_RUNTIME);
        Profile {
            milli: demand.total_milli(),
            iterations: estimate.and_then(|it| it.iterations),
            runtime: within_limit(runtime, traits),
            basis,
            graph: None,
            bounds: None,
            launch: traits.launch,
        }
    }

    /// The profile of a job with a graph whose iterations take `bounds.fastest` seconds at best.
    ///
    /// The user's word gives the number of iterations. A learned number does not: jobs of one group may train
    /// models with very different iterations, and how long they run is learned at least as well.
    #[must_use]
    pub(crate) fn mapped(
        demand: &Demand,
        traits: &JobTraits,
        graph: Arc<JobGraph>,
        bounds: Bounds,
    ) -> Profile {
        let flat = Profile::flat(demand, traits);
        let iterations = match flat.basis {
            EstimateBasis::Estimate => traits.iterations,
            EstimateBasis::Guess => traits.iterations.or(flat.iterations),
        };
        let (runtime, basis) = match iterations {
            Some(iterations) => {
                (Span::from_secs_f64(iterations as f64 * bounds.fastest), EstimateBasis::Estimate)
            }
            None => (flat.runtime, flat.basis),
        };
        let runtime = within_limit(runtime, traits);
        Profile { runtime, basis, graph: Some(graph), bounds: Some(bounds), ..flat }
    }

    /// How much slower it is at its worst placement than at its best (`rho_i`), at least 1.
    #[must_use]
    pub(crate) fn sensitivity(&self) -> f64 {
        self.bounds.map_or(1.0, |bounds| (bounds.slowest / bounds.fastest).max(1.0))
    }

    /// Its runtime at a placement that is slower than the best by this factor.
    #[must_use]
    pub(crate) fn runtime_at(&self, slowdown: f64) -> Span {
        Span::from_secs_f64(self.runtime.as_secs_f64() * slowdown)
    }

    /// The same, for people: `None` where it would be a guess.
    #[must_use]
    pub(crate) fn expected_at(&self, slowdown: f64) -> Option<Span> {
        match self.basis {
            EstimateBasis::Estimate => Some(self.runtime_at(slowdown)),
            EstimateBasis::Guess => None,
        }
    }

    /// Its work, in thousandths of a device times microseconds.
    #[must_use]
    pub(crate) fn work(&self) -> u128 {
        u128::from(self.milli) * u128::from(self.runtime.as_micros())
    }

    /// Its work at a placement that is slower than the best by this factor.
    #[must_use]
    pub(crate) fn work_at(&self, slowdown: f64) -> u128 {
        u128::from(self.milli) * u128::from(self.runtime_at(slowdown).as_micros())
    }

    /// Less work than this is needed at no placement.
    #[must_use]
    pub(crate) fn least_work(&self) -> u128 {
        self.bounds.map_or_else(|| self.work(), |bounds| self.work_at(bounds.floor / bounds.fastest))
    }
}

fn within_limit(runtime: Span, traits: &JobTraits) -> Span {
    traits.time_limit.map_or(runtime, |limit| runtime.min(limit))
}
