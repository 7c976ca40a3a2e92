//! What the driver counts for metrics.

use std::time::Instant;

use cohabit_types::{Figures, Histogram};

/// From half a millisecond to ten seconds.
const SECONDS: [f64; 12] = [0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 2.5, 10.0];

/// What the driver has counted since it started.
#[derive(Debug)]
pub(super) struct DriverFigures {
    plans: Histogram,
    commits: Histogram,
    events: u64,
    plan_requested: Option<Instant>,
    commit_begun: Option<Instant>,
}

impl Default for DriverFigures {
    fn default() -> DriverFigures {
        DriverFigures {
            plans: Histogram::new(&SECONDS),
            commits: Histogram::new(&SECONDS),
            events: 0,
            plan_requested: None,
            commit_begun: None,
        }
    }
}

impl DriverFigures {
    pub(super) fn count_event(&mut self) {
        self.events += 1;
    }

    /// At most one request for a plan is open.
    pub(super) fn begin_plan(&mut self) {
        self.plan_requested = Some(Instant::now());
    }

    pub(super) fn end_plan(&mut self) {
        if let Some(since) = self.plan_requested.take() {
            self.plans.observe(since.elapsed().as_secs_f64());
        }
    }

    /// One commit is in progress at a time.
    pub(super) fn begin_commit(&mut self) {
        self.commit_begun = Some(Instant::now());
    }

    pub(super) fn end_commit(&mut self) {
        if let Some(since) = self.commit_begun.take() {
            self.commits.observe(since.elapsed().as_secs_f64());
        }
    }

    /// Adds what the driver counts to the figures of the head.
    pub(super) fn complete(&self, of_head: Figures, problems: Vec<String>) -> Figures {
        let DriverFigures { plans, commits, events, .. } = self;
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Figures {
            version,
            plans: plans.clone(),
            commits: commits.clone(),
            events: *events,
            problems,
            ..of_head
        }
    }
}
