//! Runs applications of many seeds and adds up the results.

use serde::Serialize;

use super::counters::ApplicationCounters;
use super::run::ApplicationRun;

/// The results of many seeds.
#[derive(Debug, Default, Clone, PartialEq, Serialize)]
pub struct ApplicationSummary {
    /// Number of seeds.
    pub seeds: u64,
    /// The seeds that failed.
    pub failed: Vec<FailedApplication>,
    /// What happened in all of them.
    pub counters: ApplicationCounters,
    /// Simulated time in seconds.
    pub simulated_s: f64,
}

/// A seed that failed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FailedApplication {
    /// The seed.
    pub seed: u64,
    /// The kind of failure, for scripts.
    pub kind: &'static str,
    /// The simulated time of the failure, in seconds.
    pub at_s: f64,
    /// What was found.
    pub detail: String,
    /// The command that repeats the run.
    pub command: String,
    #[serde(skip)]
    exit_code: u8,
}

/// The command that repeats the run of a seed.
#[must_use]
pub fn application_command(seed: u64) -> String {
    format!("cargo run --release -p cohabit-sim -- applications --seed {seed} --trace")
}

impl ApplicationSummary {
    /// Adds the run of a seed.
    pub fn add(&mut self, seed: u64, run: ApplicationRun) {
        let failed = run.failure.map(|failure| FailedApplication {
            seed,
            kind: failure.kind.code(),
            at_s: failure.at.as_secs_f64(),
            detail: failure.detail,
            command: application_command(seed),
            exit_code: failure.kind.exit_code(),
        });
        self.join(ApplicationSummary {
            seeds: 1,
            failed: failed.into_iter().collect(),
            counters: run.counters,
            simulated_s: run.simulated.as_secs_f64(),
        });
    }

    /// Adds the results of other seeds.
    pub fn join(&mut self, other: ApplicationSummary) {
        self.seeds += other.seeds;
        self.simulated_s += other.simulated_s;
        self.counters.add(&other.counters);
        self.failed.extend(other.failed);
        self.failed.sort_by_key(|failed| failed.seed);
    }

    /// The exit code: 0 if no seed failed, or else the smallest code of the failures.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        self.failed.iter().map(|failed| failed.exit_code).min().unwrap_or(0)
    }
}
