//! How long a job waits for a better placement, and how long it lets other jobs pass: both in proportion to
//! what it stands to lose.
//!
//! Only jobs that are sensitive to their placement wait, and only until the wait has cost as much as the
//! slower placement would (the ski-rental, or rent-or-buy, rule). A waiting job holds no devices and blocks
//! no other. The rule has no state and looks at no nodes.

use cohabit_types::{Span, Time};

use super::ASrptOptions;
use crate::Profile;

/// A placement that is slower by less than this factor counts as the best.
const NEGLIGIBLE: f64 = 1.0 + 1e-9;

/// A job that has waited this many times the usual wait may be starving.
const UNUSUAL: u64 = 3;

/// The rule, with its parameters.
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

    /// Until when a job that has been queued since `queued_at` waits instead of taking a placement with this
    /// slowdown; `None` where it takes it at once.
    pub(super) fn ends_at(&self, profile: &Profile, queued_at: Time, slowdown: f64) -> Option<Time> {
        let matters = profile.sensitivity() > self.theta && slowdown > NEGLIGIBLE;
        matters.then(|| {
            let price = times(profile.runtime, slowdown - 1.0);
            queued_at + self.allowance(profile).min(price)
        })
    }

    /// The longest time for which a job ever waits for a better placement.
    fn allowance(&self, profile: &Profile) -> Span {
        let allowance = times(profile.runtime, self.delta);
        self.tau.map_or(allowance, |tau| allowance.min(tau))
    }

    /// How long a job lets other jobs pass, given the usual wait. At least its own runtime, so that a short
    /// allowance does not turn every wait into a barrier.
    pub(super) fn tolerance(&self, profile: &Profile, usual_wait: Span) -> Span {
        self.allowance(profile).max(profile.runtime).max(usual_wait * UNUSUAL)
    }
}

fn times(span: Span, factor: f64) -> Span {
    Span::from_secs_f64(span.as_secs_f64() * factor)
}
