//! The times at which drawn events happen.

use cohabit_types::Time;

use crate::random::Random;
use crate::scenario::Scenario;

/// A moment of the time in which things happen.
pub(super) fn moment(random: &mut Random, scenario: &Scenario) -> Time {
    Time::from_micros(random.between(0, scenario.quiet_at.as_micros()))
}
