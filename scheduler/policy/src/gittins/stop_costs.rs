//! What it costs to stop a job and to start it again: learned from the stops of its kind.

use std::collections::BTreeMap;

use cohabit_types::{JobId, Span, Time};

use super::contexts::ContextId;

/// The cost of a stop where none was seen: stopping and starting again.
const UNKNOWN: f64 = 60.0;

/// From the start of the next attempt to its first step, in seconds.
const RESTART: f64 = 45.0;

/// The weight of the last stop.
const NEWEST: f64 = 0.3;

/// Kinds that are remembered.
const MAX_KINDS: usize = 4_096;

/// The costs of stops by kind of job.
#[derive(Debug, Clone, Default)]
pub(super) struct StopCosts {
    /// From the order to stop to the release of the devices, in seconds.
    stopping: BTreeMap<ContextId, f64>,
    /// Since when jobs are being stopped.
    since: BTreeMap<JobId, Time>,
}

impl StopCosts {
    /// The expected cost of a stop, in seconds.
    pub(super) fn of(&self, kind: ContextId) -> f64 {
        self.stopping.get(&kind).map_or(UNKNOWN, |stopping| stopping + RESTART)
    }

    /// A job was told to stop.
    pub(super) fn begins(&mut self, job: JobId, now: Time) {
        self.since.entry(job).or_insert(now);
    }

    /// A job has released its devices.
    pub(super) fn ends(&mut self, job: JobId, kind: ContextId, now: Time) {
        let Some(since) = self.since.remove(&job) else { return };
        let took = Span::as_secs_f64(now.since(since));
        if self.stopping.len() == MAX_KINDS && !self.stopping.contains_key(&kind) {
            self.stopping.clear();
        }
        let known = self.stopping.entry(kind).or_insert(took);
        *known += NEWEST * (took - *known);
    }

    pub(super) fn forget(&mut self, job: JobId) {
        self.since.remove(&job);
    }
}
