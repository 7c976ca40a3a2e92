//! The reading side of the head: questions are answered at a time, and with what the policy last forecast.
//!
//! `answer` has the questions, `records` what is shown of jobs, `reason` and `explain` why. Nothing here
//! changes the head.

use cohabit_policy::{JobForecast, PastRuns};
use cohabit_types::{JobId, Time};

use crate::forecasts::PolicyForecasts;
use crate::head::Head;

/// A head that answers questions at one time.
#[derive(Debug, Clone, Copy)]
pub struct HeadReader<'h> {
    pub(crate) head: &'h Head,
    pub(crate) now: Time,
    pub(crate) forecasts: Option<&'h PolicyForecasts>,
    pub(crate) past_runs: Option<&'h PastRuns>,
}

impl Head {
    /// The reading side at this time, without forecasts and run times.
    #[must_use]
    pub const fn at(&self, now: Time) -> HeadReader<'_> {
        HeadReader { head: self, now, forecasts: None, past_runs: None }
    }
}

impl<'h> HeadReader<'h> {
    /// The same, with these forecasts.
    #[must_use]
    pub const fn with_forecasts(self, forecasts: &'h PolicyForecasts) -> HeadReader<'h> {
        HeadReader { forecasts: Some(forecasts), ..self }
    }

    /// The same, with the run times of these jobs.
    #[must_use]
    pub const fn with_past_runs(self, past_runs: &'h PastRuns) -> HeadReader<'h> {
        HeadReader { past_runs: Some(past_runs), ..self }
    }

    /// What the policy forecast of a job that is still in the queue.
    pub(crate) fn forecast(&self, id: JobId) -> Option<&'h JobForecast> {
        self.forecasts?.job(id).filter(|_| self.head.eligible.contains(&id))
    }
}
