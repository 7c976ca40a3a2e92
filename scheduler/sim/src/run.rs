//! One run of one scenario, and what is left to say about it.
//!
//! A run never fails as a function: what went wrong is part of the answer, together with the digest by which
//! two runs of one seed are compared.

use cohabit_types::{JobRecord, Span, Time};

use crate::draw::Options;
use crate::failure::{FailureKind, SimFailure};
use crate::head_hooks::ExactEstimator;
use crate::recorder::TraceDetail;
use crate::scenario::Scenario;
use crate::world::{RunCounters, World};

/// A run that is over.
#[derive(Debug, Clone, PartialEq)]
pub struct RunResult {
    /// Of everything that happened: two runs of one seed have the same.
    pub digest: u64,
    /// What was counted.
    pub counters: RunCounters,
    /// How much time passed in the cluster.
    pub simulated: Span,
    /// The jobs and arrays that were accepted, as they are in the end, as far as they are still known.
    pub jobs: Vec<JobRecord>,
    /// What went wrong, if something did.
    pub failure: Option<SimFailure>,
    /// The last chapters of some jobs, if something went wrong.
    pub job_events: Vec<String>,
    /// What happened, as far as it was kept.
    pub trace: Vec<String>,
}

/// Lets the scenario happen; what it leaves open comes from the seed.
///
/// # Panics
/// If no policy has the scenario's name for it. What panics inside the cluster is a failure of the run.
#[must_use]
pub fn run(seed: u64, scenario: Scenario, keep: TraceDetail) -> RunResult {
    let mut hooks = ExactEstimator;
    let mut world = World::new(seed, scenario, keep, &mut hooks);
    let failure = world.run().err();
    RunResult {
        digest: world.digest.value(),
        counters: world.counters,
        simulated: world.now().since(Time::EPOCH),
        jobs: world.records(),
        job_events: failure.as_ref().map(|_| world.last_job_events()).unwrap_or_default(),
        failure,
        trace: world.into_trace(),
    }
}

/// Runs the scenario of the seed twice; that the two differ is a failure too.
#[must_use]
pub fn run_twice(seed: u64, options: &Options, keep: TraceDetail) -> RunResult {
    let mut first = run(seed, Scenario::draw(seed, options), keep);
    let second = run(seed, Scenario::draw(seed, options), TraceDetail::Nothing);
    if first.failure.is_none() && (first.digest, first.simulated) != (second.digest, second.simulated) {
        first.failure = Some(SimFailure {
            kind: FailureKind::Differs,
            at: Time::EPOCH + first.simulated,
            detail: format!("the digests are {:016x} and {:016x}", first.digest, second.digest),
        });
    }
    first
}
