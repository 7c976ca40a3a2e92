//! Draws programs that cannot be executed, disks that are full while links break, and clocks that jump by
//! days.

use cohabit_types::Span;

use super::random_time::random_time;
use crate::random::Random;
use crate::scenario::{ExternalEvent, Scenario};
use crate::wall_clock::ClockStep;

/// Longer than executors wait for the head.
const LONG: (Span, Span) = (Span::from_secs(60), Span::from_secs(1_200));
/// Links that break are back soon.
const SHORT: (Span, Span) = (Span::from_millis(10), Span::from_secs(20));
const DAYS: (Span, Span) = (Span::from_secs(86_400), Span::from_secs(400 * 86_400));

/// Adds each of them to some of the scenarios.
pub(super) fn draw_outages(seed: u64, scenario: &mut Scenario) {
    let mut random = Random::stream(seed, "outages");
    let kinds: [fn(&mut Random, &mut Scenario, usize); 3] = [break_program, fill_disks, step_clock];
    for kind in kinds {
        let most = if random.chance(0.35) { random.between(1, 2 + scenario.shapes.len() as u64) } else { 0 };
        for _ in 0..most {
            let node = random.between(0, scenario.shapes.len() as u64 - 1) as usize;
            kind(&mut random, scenario, node);
        }
    }
}

fn break_program(random: &mut Random, scenario: &mut Scenario, node: usize) {
    let at = random_time(random, scenario);
    scenario.external_events.push((at, ExternalEvent::BreakProgram { node, length: random.span(LONG) }));
}

/// The disk of the head, of a worker, or of both is full, and the link between them breaks.
fn fill_disks(random: &mut Random, scenario: &mut Scenario, node: usize) {
    let at = random_time(random, scenario);
    let which = random.between(1, 3);
    if which != 2 {
        scenario.external_events.push((at, ExternalEvent::FillDisk { node, length: random.span(LONG) }));
    }
    if which != 1 {
        scenario.external_events.push((at, ExternalEvent::FillJournal { length: random.span(LONG) }));
    }
    for _ in 0..random.between(1, 3) {
        let (length, head_notices, worker_notices) =
            (random.span(SHORT), random.span(SHORT), random.span(SHORT));
        let later = at + random.span((Span::from_secs(1), Span::from_secs(60)));
        let cut = ExternalEvent::Cut { node, length, head_notices, worker_notices };
        scenario.external_events.push((later.min(scenario.quiet_at), cut));
    }
}

/// The clock of a machine jumps, now and then while its link is broken.
fn step_clock(random: &mut Random, scenario: &mut Scenario, node: usize) {
    let at = random_time(random, scenario);
    let span = random.span(DAYS);
    let step = if random.chance(0.5) { ClockStep::Ahead(span) } else { ClockStep::Back(span) };
    scenario.external_events.push((at, ExternalEvent::StepClock { node, step }));
    if random.chance(0.5) {
        let length = random.span(LONG);
        let cut = ExternalEvent::Cut { node, length, head_notices: Span::ZERO, worker_notices: Span::ZERO };
        scenario.external_events.push((at.min(scenario.quiet_at), cut));
    }
}
