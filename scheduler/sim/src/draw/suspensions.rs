//! Draws what is suspended, and what is killed so that nobody is left who holds a rank.

use cohabit_types::{JobChange, JobSpec, Span, Time};
use cohabit_worker_core::LEASE_TERM;

use super::random_time::random_time;
use crate::program::SimProgram;
use crate::random::Random;
use crate::scenario::{ExternalEvent, Scenario};

/// Spans from a moment to one after which a node is given up.
const ANY: (Span, Span) = (Span::from_secs(1), Span::from_secs(1_200));

/// Adds such faults to two thirds of the scenarios, and in half of these makes the limit of unreachable nodes
/// as short as the ranks there allow.
pub(super) fn draw_suspensions(seed: u64, scenario: &mut Scenario) {
    let mut random = Random::stream(seed, "suspensions");
    if !random.chance(0.65) {
        return;
    }
    if random.chance(0.5) {
        scenario.config.lost_after = random.span((Span::from_secs(1), Span::from_secs(60)));
        scenario.submissions.iter_mut().for_each(|submission| die_soon(&mut submission.spec));
    }
    let kinds: [fn(&mut Random, usize, Span) -> ExternalEvent; 5] =
        [kill_by_name, suspend_worker, suspend_executor, pause_machine, kill_executor];
    for kind in kinds {
        let most = if random.chance(0.5) { random.between(1, 3 + scenario.shapes.len() as u64) } else { 0 };
        for _ in 0..most {
            let at = random_time(&mut random, scenario);
            let node = random.between(0, scenario.shapes.len() as u64 - 1) as usize;
            let fault = kind(&mut random, node, scenario.orphan_grace);
            if random.chance(0.3) {
                scenario.external_events.push((at, crash_worker(&mut random, node)));
            }
            scenario.external_events.push((at, fault));
        }
    }
    draw_during_runs(&mut random, scenario);
}

/// The head allows no more than five seconds for a watchdog's SIGKILL.
fn die_soon(spec: &mut JobSpec) {
    let mut program = SimProgram::of(spec);
    program.kill_delay = program.kill_delay.min(Span::from_secs(4));
    spec.entrypoint = program.job().entrypoint;
}

/// Adds suspensions at times when jobs may run, some of which are then killed.
fn draw_during_runs(random: &mut Random, scenario: &mut Scenario) {
    let is_submit = |(_, event): &&(Time, ExternalEvent)| matches!(event, ExternalEvent::Submit(_));
    let submits: Vec<Time> = scenario.external_events.iter().filter(is_submit).map(|(at, _)| *at).collect();
    for submitted_at in submits {
        if random.chance(0.2) {
            let at = submitted_at + random.span((Span::from_millis(500), Span::from_secs(200)));
            let node = random.between(0, scenario.shapes.len() as u64 - 1) as usize;
            let kinds: [fn(&mut Random, usize, Span) -> ExternalEvent; 3] =
                [kill_by_name, suspend_executor, pause_machine];
            let fault = random.pick(&kinds)(random, node, scenario.orphan_grace);
            if let (ExternalEvent::SuspendExecutor { .. }, true) = (&fault, random.chance(0.5)) {
                let later = at + random.span((Span::from_secs(1), Span::from_secs(20)));
                let kill = ExternalEvent::Change { change: JobChange::Kill, back: random.between(0, 2) };
                scenario.external_events.push((later.min(scenario.quiet_at), kill));
            }
            scenario.external_events.push((at.min(scenario.quiet_at), fault));
        }
    }
}

fn crash_worker(random: &mut Random, node: usize) -> ExternalEvent {
    ExternalEvent::CrashWorker { node, down_for: random.span(ANY) }
}

fn kill_by_name(random: &mut Random, node: usize, _: Span) -> ExternalEvent {
    ExternalEvent::KillByName { node, down_for: random.span(ANY) }
}

fn suspend_worker(random: &mut Random, node: usize, grace: Span) -> ExternalEvent {
    ExternalEvent::SuspendWorker { node, length: length(random, grace) }
}

fn suspend_executor(random: &mut Random, node: usize, grace: Span) -> ExternalEvent {
    ExternalEvent::SuspendExecutor { node, number: number(random), length: length(random, grace) }
}

fn pause_machine(random: &mut Random, node: usize, grace: Span) -> ExternalEvent {
    ExternalEvent::PauseMachine { node, length: length(random, grace) }
}

fn kill_executor(random: &mut Random, node: usize, _: Span) -> ExternalEvent {
    ExternalEvent::KillExecutor { node, number: number(random) }
}

/// Any span, or one that ends between the end of the orphan grace and the moment when the watchdog kills.
fn length(random: &mut Random, grace: Span) -> Span {
    match random.chance(0.5) {
        true => random.span(ANY),
        false => grace + LEASE_TERM + random.span((Span::from_millis(1), Span::from_secs(40))),
    }
}

fn number(random: &mut Random) -> usize {
    random.between(0, 11) as usize
}
