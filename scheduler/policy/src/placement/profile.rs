//! What a policy expects of a job on the cluster at hand: how much it needs, for how long, and what a good
//! place is worth to it.
//!
//! A profile is made once, when a job becomes pending, from what was frozen at its submission. It never looks
//! at how the job fares.

use std::sync::Arc;

use cohabit_types::{Demand, LaunchMode, Span};

use crate::JobTraits;
use crate::mapping::{Bounds, JobGraph};

/// Where nothing at all is known of a job, it is expected to run for this long. Neither nothing, which would
/// let every novelty jump the queue, nor without end, which would starve it.
pub const UNKNOWN_RUNTIME: Span = Span::from_secs(3_600);

/// What is expected of a job.
#[derive(Debug, Clone)]
pub(crate) struct Profile {
    /// What it occupies on all nodes together, in thousandths of a device (`g_i`).
    pub(crate) milli: u64,
    /// Its iterations (`n^_i`), where they are known.
    pub(crate) iterations: Option<u64>,
    /// How long it runs at its best place (`n^_i * alpha_i^min` where it has a graph).
    pub(crate) runtime: Span,
    /// What that rests on.
    pub(crate) ground: EstimateBasis,
    /// Its replicas and what flows between them, where its model says so.
    pub(crate) graph: Option<Arc<JobGraph>>,
    /// What one iteration of the graph takes at the best and the worst place, in seconds.
    pub(crate) bounds: Option<Bounds>,
    /// Who launches its ranks: only where we do can each of them be put on a chosen device.
    pub(crate) launch: LaunchMode,
}

/// What an expectation rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EstimateBasis {
    /// An estimate.
    Estimate,
    /// Nothing: it is there so that one can plan at all, and not for people.
    Guess,
}

impl Profile {
    /// A profile from an estimate alone: every place is as good as another.
    #[must_use]
    pub(crate) fn flat(demand: &Demand, traits: &JobTraits) -> Profile {
        let estimate = traits.estimate.as_ref();
        let runtime = estimate.and_then(|it| it.runtime);
        let ground = if runtime.is_some() { EstimateBasis::Estimate } else { EstimateBasis::Guess };
        let runtime = runtime.unwrap_or(UNKNOWN_RUNTIME);
        Profile {
            milli: demand.total_milli(),
            iterations: estimate.and_then(|it| it.iterations),
            runtime: within_limit(runtime, traits),
            ground,
            graph: None,
            bounds: None,
            launch: traits.launch,
        }
    }

    /// A profile of a job with a graph, whose iterations take at best `bounds.fastest`.
    #[must_use]
    pub(crate) fn mapped(
        demand: &Demand,
        traits: &JobTraits,
        graph: Arc<JobGraph>,
        bounds: Bounds,
    ) -> Profile {
        let flat = Profile::flat(demand, traits);
        let (runtime, ground) = match flat.iterations {
            Some(iterations) => {
                (Span::from_secs_f64(iterations as f64 * bounds.fastest), EstimateBasis::Estimate)
            }
            None => (flat.runtime, flat.ground),
        };
        let runtime = within_limit(runtime, traits);
        Profile { runtime, ground, graph: Some(graph), bounds: Some(bounds), ..flat }
    }

    /// How much slower it is at its worst place than at its best (`rho_i`), at least 1.
    #[must_use]
    pub(crate) fn sensitivity(&self) -> f64 {
        self.bounds.map_or(1.0, |bounds| (bounds.slowest / bounds.fastest).max(1.0))
    }

    /// How long it runs at a place that is slower than the best by this factor.
    #[must_use]
    pub(crate) fn runtime_at(&self, slowdown: f64) -> Span {
        Span::from_secs_f64(self.runtime.as_secs_f64() * slowdown)
    }

    /// The same for people: nothing where it would be a guess.
    #[must_use]
    pub(crate) fn expected_at(&self, slowdown: f64) -> Option<Span> {
        match self.ground {
            EstimateBasis::Estimate => Some(self.runtime_at(slowdown)),
            EstimateBasis::Guess => None,
        }
    }

    /// The work that it is to the cluster, in thousandths of a device times microseconds.
    #[must_use]
    pub(crate) fn work(&self) -> u128 {
        u128::from(self.milli) * u128::from(self.runtime.as_micros())
    }
}

fn within_limit(runtime: Span, traits: &JobTraits) -> Span {
    traits.time_limit.map_or(runtime, |limit| runtime.min(limit))
}
