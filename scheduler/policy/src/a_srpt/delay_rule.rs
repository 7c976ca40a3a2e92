//! How long a job holds out for a better place, and how long it lets others pass: both in proportion to what
//! is at stake for it.
//!
//! Only jobs to which their place matters hold out, and only until the wait has cost as much as the slower
//! place would (rent or buy). Whoever holds out holds no devices and blocks nobody. No state, no places.

use cohabit_types::{Span, Time};

use super::ASrptOptions;
use crate::Profile;

/// A place slower than the best by less than this is as good as the best.
const NEGLIGIBLE: f64 = 1.0 + 1e-9;

/// A job that waited this many times longer than is usual may have been passed for too long.
const UNUSUAL: u64 = 3;

/// The rule of holding out, with its numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct DelayRule {
    theta: f64,
    delta: f64,
    tau: Option<Span>,
}

impl DelayRule {
    pub(super) const fn new(options: &ASrptOptions) -> DelayRule {
        DelayRule { theta: options.theta, delta: options.delta, tau: options.tau }
    }

    /// Until when a job that waits since `queued_at` holds out for a place that is better than one slower
    /// than the best by the factor `slowdown`; nothing where it takes the place at once.
    pub(super) fn ends_at(&self, profile: &Profile, queued_at: Time, slowdown: f64) -> Option<Time> {
        let matters = profile.sensitivity() > self.theta && slowdown > NEGLIGIBLE;
        matters.then(|| {
            let price = times(profile.runtime, slowdown - 1.0);
            queued_at + self.allowance(profile).min(price)
        })
    }

    /// Until when it waits for a device of its own instead of joining others on one, where that makes it and
    /// them so much later together: no longer than to join them would have cost.
    pub(super) const fn own_device_deadline(queued_at: Time, delay: Span) -> Time {
        Time::from_micros(queued_at.as_micros().saturating_add(delay.as_micros()))
    }

    /// The longest a job ever holds out.
    fn allowance(&self, profile: &Profile) -> Span {
        let allowance = times(profile.runtime, self.delta);
        self.tau.map_or(allowance, |tau| allowance.min(tau))
    }

    /// How long a job lets others pass where jobs usually wait for so long. At least its own runtime, so that
    /// a short allowance does not turn every wait into a barrier.
    pub(super) fn tolerance(&self, profile: &Profile, usual_wait: Span) -> Span {
        self.allowance(profile).max(profile.runtime).max(usual_wait * UNUSUAL)
    }
}

fn times(span: Span, factor: f64) -> Span {
    Span::from_secs_f64(span.as_secs_f64() * factor)
}
