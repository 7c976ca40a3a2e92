//! Two-dimensional least attained service (LAS), after Gu et al., "Tiresias", NSDI 2019: jobs that have used
//! less GPU time go first, counted as devices times time, so that no runtime has to be known.
//!
//! Compared exactly, equal jobs would preempt each other without end, so attained service is cut into a few
//! queues. Within a queue the earlier submission goes first, and no job is stopped for another. Jobs are
//! never promoted, however long they wait.

use cohabit_types::{Share, Span};

use super::{AttainedService, Urgency};
use crate::Profile;

/// Queues by attained service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LeastAttained {
    /// Where the first queue ends, in time on one whole device.
    pub(crate) first: Span,
    /// The ratio of a queue's end to the end of the queue before; at least 2.
    pub(crate) factor: u32,
    /// The number of queues; the last one has no end.
    pub(crate) queues: u32,
}

/// Three queues, cut at one and at ten hours of one device.
impl Default for LeastAttained {
    fn default() -> LeastAttained {
        LeastAttained { first: Span::from_secs(3_600), factor: 10, queues: 3 }
    }
}

impl LeastAttained {
    /// Eight queues, cut at ten minutes of one device and then at four times as much each: finer than the
    /// default, so that long jobs of different lengths are told apart.
    pub(crate) const TUNED: LeastAttained =
        LeastAttained { first: Span::from_secs(600), factor: 4, queues: 8 };

    /// Where the queues end, in thousandths of a device times microseconds.
    fn ends(&self) -> impl Iterator<Item = u128> {
        let first = u128::from(self.first.as_micros()) * u128::from(Share::WHOLE.0);
        let factor = u128::from(self.factor.max(2));
        let next = move |end: &u128| end.checked_mul(factor);
        std::iter::successors(Some(first), next).take(self.queues.saturating_sub(1) as usize)
    }
}

impl Urgency for LeastAttained {
    fn measure(&self, profile: &Profile, service: AttainedService) -> u128 {
        let attained = u128::from(profile.milli) * u128::from(service.held.as_micros());
        self.ends().take_while(|end| attained >= *end).count() as u128
    }

    fn time_until_demotion(&self, profile: &Profile, service: AttainedService) -> Option<Span> {
        let milli = u128::from(profile.milli);
        let attained = milli * u128::from(service.held.as_micros());
        let missing = self.ends().find(|end| attained < *end)? - attained;
        let micros = if milli == 0 { return None } else { missing.div_ceil(milli) };
        u64::try_from(micros).ok().map(Span::from_micros)
    }

    fn claim(&self) -> &'static str {
        "has used less GPU time"
    }
}
