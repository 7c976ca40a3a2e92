//! What the order expects of each job, for a placer that asks only about those that its decision depends on.

use cohabit_types::{JobId, Time};

use super::state::OrderState;
use crate::placement::{JobOutlook, OutlookVersion, Outlooks};

/// The expectations of a state at one time.
#[derive(Debug, Clone, Copy)]
pub(super) struct OrderOutlooks<'s> {
    state: &'s OrderState,
    /// The mean rest of running jobs, in seconds.
    usual_rest: f64,
    now: Time,
}

impl<'s> OrderOutlooks<'s> {
    pub(super) fn new(state: &'s OrderState, now: Time) -> OrderOutlooks<'s> {
        OrderOutlooks { state, usual_rest: usual_rest(state), now }
    }
}

impl Outlooks for OrderOutlooks<'_> {
    fn of(&self, job: JobId) -> Option<JobOutlook> {
        let OrderOutlooks { state, usual_rest, now } = *self;
        if let Some(entry) = state.running.get(job) {
            return state.outlook(&entry.job, entry.age(now), entry.rank.rest, usual_rest, now);
        }
        let (waiting, entry) = (state.waiting.get(job)?, state.waiting.entry_of(job)?);
        state.outlook(waiting, waiting.worked(), entry.rank.rest, usual_rest, now)
    }

    fn version(&self) -> Option<OutlookVersion> {
        Some(OutlookVersion { number: self.state.outlook_version, at: self.now })
    }
}

/// The mean of the typical rests of running jobs, in seconds.
fn usual_rest(state: &OrderState) -> f64 {
    let (count, sum) =
        state.running.typical_rests().fold((0.0, 0.0), |(count, sum), rest| (count + 1.0, sum + rest));
    if count > 0.0 { sum / count } else { 0.0 }
}
