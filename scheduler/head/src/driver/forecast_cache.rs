//! The policy's latest forecasts, and the queries that wait for new ones.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use cohabit_scheduler_core::{Head, PolicyForecasts};
use cohabit_types::JobId;

use super::message::Query;

/// How long a forecast may be shown again.
const FORECAST_TTL: Duration = Duration::from_millis(500);

/// What the policy last forecast, when it did, and who waits for the next forecasts.
#[derive(Default)]
pub(super) struct ForecastCache {
    forecasts: PolicyForecasts,
    updated_at: Option<Instant>,
    waiting: Vec<Query>,
}

impl ForecastCache {
    /// The latest forecasts.
    pub(super) const fn forecasts(&self) -> &PolicyForecasts {
        &self.forecasts
    }

    /// Whether the latest forecasts are recent enough to be shown, and leave out no job of this head.
    pub(super) fn is_fresh(&self, head: &Head) -> bool {
        self.updated_at.is_some_and(|at| at.elapsed() < FORECAST_TTL) && self.forecasts.cover(head)
    }

    /// Takes over new forecasts.
    pub(super) fn update(&mut self, forecasts: PolicyForecasts) {
        self.forecasts = forecasts;
        self.updated_at = Some(Instant::now());
    }

    /// Drops the forecasts of jobs that have changed.
    pub(super) fn forget(&mut self, changed: &BTreeSet<JobId>) {
        self.forecasts.forget(changed);
    }

    /// Adds a query. Returns whether it is the first, for which forecasts have to be requested.
    pub(super) fn wait(&mut self, query: Query) -> bool {
        self.waiting.push(query);
        self.waiting.len() == 1
    }

    /// The queries that waited.
    pub(super) fn take_waiting(&mut self) -> Vec<Query> {
        std::mem::take(&mut self.waiting)
    }
}
