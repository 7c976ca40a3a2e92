//! Draws interactive jobs, and when the processes on each node work.

use cohabit_types::Span;

use super::random_time::random_time;
use crate::random::Random;
use crate::scenario::{ExternalEvent, Scenario};

/// Between two readings: after 30 s a worker does not know what happened meanwhile.
const READING: Span = Span::from_secs(20);

/// Makes some jobs interactive in half of the scenarios.
pub(super) fn draw(seed: u64, scenario: &mut Scenario) {
    let mut random = Random::stream(seed, "idleness");
    if !random.chance(0.5) {
        return;
    }
    scenario.config.idle_stop =
        random.chance(0.9).then(|| random.span((Span::from_secs(30), Span::from_secs(900))));
    for submission in &mut scenario.submissions {
        submission.spec.interactive = submission.spec.array.is_none() && random.chance(0.4);
    }
    for node in 0..scenario.shapes.len() {
        let (mut at, mut works) = (random_time(&mut random, scenario), random.chance(0.5));
        while at < scenario.quiet_at {
            works ^= random.chance(0.1);
            scenario.external_events.push((at, ExternalEvent::ReadActivity { node, works }));
            at += READING;
        }
    }
}
