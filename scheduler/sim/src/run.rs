//! One run of one scenario, and its result.
//!
//! Running never fails as a function: a failure is part of the result, together with the digest by which two
//! runs of one seed are compared.

use cohabit_types::{JobRecord, Span, Time};

use crate::draw::Options;
use crate::failure::{FailureKind, SimFailure};
use crate::head_hooks::ExactEstimator;
use crate::recorder::TraceDetail;
use crate::scenario::Scenario;
use crate::world::{RunCounters, World};

/// The result of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunResult {
    /// Digest of all events and effects: two runs of one seed have the same.
    pub digest: u64,
    /// What was counted.
    pub counters: RunCounters,
    /// Simulated time.
    pub simulated: Span,
    /// The final records of the accepted jobs and arrays that are still known.
    pub jobs: Vec<JobRecord>,
    /// The failure, if the run failed.
    pub failure: Option<SimFailure>,
    /// The last events of some jobs, if the run failed.
    pub job_events: Vec<String>,
    /// The lines of the trace that were kept.
    pub trace: Vec<String>,
}

/// Runs the scenario; everything that it leaves open is drawn from the seed.
///
/// # Panics
///
/// If the scenario names an unknown policy. Panics inside the cluster are failures of the run.
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

/// Runs the scenario of the seed twice. Two runs that differ are a failure.
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
