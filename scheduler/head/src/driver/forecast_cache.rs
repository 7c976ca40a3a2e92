//! The policy's latest forecasts, and the queries that wait for new ones.

use std::time::{Duration, Instant};

use super::message::Query;

/// How long a forecast may be shown again.
const FORECAST_TTL: Duration = Duration::from_millis(500);

/// When the policy last made forecasts, and who waits for the next ones. The forecasts themselves are in
/// the head.
#[derive(Default)]
pub(super) struct ForecastCache {
    updated_at: Option<Instant>,
    waiting: Vec<Query>,
}

impl ForecastCache {
    /// Whether the latest forecasts are recent enough to be shown.
    pub(super) fn is_fresh(&self) -> bool {
        self.updated_at.is_some_and(|at| at.elapsed() < FORECAST_TTL)
    }

    /// New forecasts have arrived.
    pub(super) fn note_update(&mut self) {
        self.updated_at = Some(Instant::now());
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
