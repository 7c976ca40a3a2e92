//! Draws arrays of many short members, which are started one after the other, and in advance.

use cohabit_types::{Array, Demand, GpuRequest, JobSpec, Span};

use super::jobs::{CHANGES, steady_program};
use super::random_time::random_time;
use crate::program::{SimProgram, StartBehaviour};
use crate::random::Random;
use crate::scenario::{ExternalEvent, Scenario, ScenarioSubmission};

/// Adds such arrays to a part of the scenarios, and mostly takes out what keeps their members from being
/// started so: other jobs, and plans that take longer than the members.
pub(super) fn draw(seed: u64, scenario: &mut Scenario) {
    let mut random = Random::stream(seed, "short arrays");
    if !random.chance(0.25) {
        return;
    }
    if random.chance(0.7) {
        scenario.submissions.clear();
        scenario.external_events.retain(|(_, event)| !matches!(event, ExternalEvent::Submit(_)));
        scenario.planning = (Span::from_micros(10), Span::from_millis(1));
    }
    for _ in 0..random.between(1, 3) {
        let (at, index) = (random_time(&mut random, scenario), scenario.submissions.len());
        let user = (*random.pick(&["ada", "grace"])).to_owned();
        let spec = array(&mut random);
        scenario.submissions.push(ScenarioSubmission { spec, user, after: vec![], parent: None });
        scenario.external_events.push((at, ExternalEvent::Submit(index)));
        for _ in 0..random.between(0, 6) {
            let later = at + random.span((Span::from_millis(1), Span::from_secs(60)));
            let event = disturbance(&mut random, scenario);
            scenario.external_events.push((later, event));
        }
    }
}

/// Something that happens while such an array runs.
fn disturbance(random: &mut Random, scenario: &Scenario) -> ExternalEvent {
    let node = random.between(0, scenario.shapes.len() as u64 - 1) as usize;
    let mut span = |longest| random.span((Span::from_millis(1), longest));
    let (length, head_notices, worker_notices) =
        (span(Span::from_secs(100)), span(Span::from_secs(5)), span(Span::from_secs(5)));
    match random.between(0, 9) {
        0 => ExternalEvent::CrashHead { effects_lost: random.between(0, 3) as u32, down_for: length },
        1 => ExternalEvent::CrashWorker { node, down_for: length },
        2 => ExternalEvent::Cut { node, length, head_notices, worker_notices },
        3 => ExternalEvent::Drain(node),
        4 => ExternalEvent::Resume(node),
        _ => ExternalEvent::Change { change: *random.pick(&CHANGES), back: random.between(0, 40) },
    }
}

fn array(random: &mut Random) -> JobSpec {
    let longest = *random.pick(&[Span::from_millis(200), Span::from_secs(3), Span::from_secs(20)]);
    let program = SimProgram {
        solo_duration: random.span((Span::from_millis(1), longest)),
        start: StartBehaviour::Succeeds(random.span((Span::from_millis(1), Span::from_millis(100)))),
        exit: i32::from(random.chance(0.1)),
        failing_attempts: 0,
        leftover_duration: Span::ZERO,
        ..steady_program(random)
    };
    let mut array = Array::from(0..=random.between(20, 80) as u32);
    array.at_once = random.chance(0.2).then(|| random.between(1, 6) as u32);
    let demand = Demand { gpus: GpuRequest::Whole(1), ..Demand::default() };
    JobSpec { array: Some(array), demand, preemptible: random.chance(0.5), ..program.job() }
}
