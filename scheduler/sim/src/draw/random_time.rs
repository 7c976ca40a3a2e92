//! The times at which drawn events happen.

use cohabit_types::Time;

use crate::random::Random;
use crate::scenario::Scenario;

/// A random time before the quiet phase.
pub(super) fn random_time(random: &mut Random, scenario: &Scenario) -> Time {
    Time::from_micros(random.between(0, scenario.quiet_at.as_micros()))
}
