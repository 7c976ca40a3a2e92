//! Shortest remaining time first: with exact estimates, the most that preemption can gain on one machine.
//!
//! The remaining time is that at a job's best placement. Counted at the present placement, it would differ
//! between a running job and the same job waiting, and two jobs could preempt each other in turns.

use cohabit_types::Span;

use super::{AttainedService, Urgency};
use crate::Profile;

/// The shortest expected remaining time first; a job that should have ended already is the most urgent.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct ShortestRemaining;

impl Urgency for ShortestRemaining {
    fn measure(&self, profile: &Profile, service: AttainedService) -> u128 {
        profile.runtime.as_micros().saturating_sub(service.progress.as_micros()).into()
    }

    fn time_until_demotion(&self, _: &Profile, _: AttainedService) -> Option<Span> {
        None
    }

    fn claim(&self) -> &'static str {
        "has less time left to run"
    }
}
