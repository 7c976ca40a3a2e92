//! Runs many seeds, each twice, and adds up the results.
//!
//! Everything here runs on one thread; a caller with several threads joins their summaries.

use std::ops::Range;

use serde::Serialize;

use crate::draw::Options;
use crate::failure::{FailureKind, SimFailure};
use crate::recorder::TraceDetail;
use crate::run::{RunResult, run_twice};

/// The results of many seeds.
#[derive(Debug, Default, Clone, PartialEq, Serialize)]
pub struct SwarmSummary {
    /// Number of seeds.
    pub seeds: u64,
    /// The seeds that failed.
    pub failed: Vec<FailedSeed>,
    /// Events that the production cores handled, in one of the two runs of each seed.
    pub events: u64,
    /// Ranks that were started.
    pub ranks: u64,
    /// Crashes of the head, of daemons and of machines.
    pub crashes: u64,
    /// Links that broke.
    pub breaks: u64,
    /// Ranks that were started as clients of an MPS server.
    pub clients: u64,
    /// MPS servers that broke, and GPUs that were lost.
    pub gpu_faults: u64,
    /// Jobs that were stopped for others.
    pub stops: u64,
    /// Jobs that were started because they had waited too long.
    pub overdue_starts: u64,
    /// Simulated time in seconds.
    pub simulated_s: f64,
}

/// A seed that failed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FailedSeed {
    /// The seed.
    pub seed: u64,
    /// The kind of failure, for scripts.
    pub kind: &'static str,
    /// The simulated time of the failure, in seconds.
    pub at_s: f64,
    /// What was found.
    pub detail: String,
    /// The last events of some jobs.
    #[serde(rename = "chapters")]
    pub job_events: Vec<String>,
    /// The command that repeats the run.
    pub command: String,
    #[serde(skip)]
    exit_code: u8,
}

/// Runs each of these seeds twice.
#[must_use]
pub fn swarm(seeds: Range<u64>, options: &Options) -> SwarmSummary {
    let mut summary = SwarmSummary::default();
    for seed in seeds {
        summary.add(seed, options, run_twice(seed, options, TraceDetail::Nothing));
    }
    summary
}

/// The command that repeats the run of a seed.
#[must_use]
pub fn command(seed: u64, options: &Options) -> String {
    let nodes = options.nodes.map(|nodes| format!(" --nodes {nodes}")).unwrap_or_default();
    let jobs = options.jobs.map(|jobs| format!(" --jobs {jobs}")).unwrap_or_default();
    format!("cargo run --release -p cohabit-sim -- repeat --seed {seed}{nodes}{jobs}")
}

impl SwarmSummary {
    /// Adds the run of a seed.
    pub fn add(&mut self, seed: u64, options: &Options, run: RunResult) {
        self.seeds += 1;
        self.events += run.counters.events;
        self.ranks += run.counters.ranks;
        self.crashes += run.counters.crashes;
        self.breaks += run.counters.breaks;
        self.clients += run.counters.clients;
        self.gpu_faults += run.counters.gpu_faults;
        self.stops += run.counters.stops;
        self.overdue_starts += run.counters.overdue_starts;
        self.simulated_s += run.simulated.as_secs_f64();
        self.failed
            .extend(run.failure.map(|failure| FailedSeed::new(seed, options, failure, run.job_events)));
    }

    /// Adds the results of other seeds.
    pub fn join(&mut self, other: SwarmSummary) {
        self.seeds += other.seeds;
        self.events += other.events;
        self.ranks += other.ranks;
        self.crashes += other.crashes;
        self.breaks += other.breaks;
        self.clients += other.clients;
        self.gpu_faults += other.gpu_faults;
        self.stops += other.stops;
        self.overdue_starts += other.overdue_starts;
        self.simulated_s += other.simulated_s;
        self.failed.extend(other.failed);
        self.failed.sort_by_key(|failed| failed.seed);
    }

    /// The exit code: 0 if no seed failed, or else the smallest code of the failures.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        self.failed.iter().map(|failed| failed.exit_code).min().unwrap_or(0)
    }
}

impl FailedSeed {
    fn new(seed: u64, options: &Options, failure: SimFailure, job_events: Vec<String>) -> FailedSeed {
        let kind: FailureKind = failure.kind;
        FailedSeed {
            seed,
            kind: kind.code(),
            at_s: failure.at.as_secs_f64(),
            detail: failure.detail,
            job_events,
            command: command(seed, options),
            exit_code: kind.exit_code(),
        }
    }
}
