//! Draws faults of all kinds.
//!
//! A broken link is noticed within 40 s and nothing takes longer than two minutes to stop, so the head's
//! limit of 300 s for an unreachable node meets the requirement in its documentation.

use cohabit_types::{Bytes, Span, Time};

use super::random_time::random_time;
use crate::machine::{Disk, FaultAttribution, ObservedMemory};
use crate::random::Random;
use crate::scenario::{ExternalEvent, Scenario};
use crate::wall_clock::ClockStep;

/// Spans from almost zero to one after which a node is given up.
const ANY: (Span, Span) = (Span::from_millis(10), Span::from_secs(1_200));
/// How long it takes to notice a broken link.
const NOTICE_DELAY: (Span, Span) = (Span::from_millis(1), Span::from_secs(40));

/// Adds faults to the scenario.
pub(super) fn draw_faults(seed: u64, scenario: &mut Scenario) {
    let mut random = Random::stream(seed, "faults");
    let kinds: [fn(&mut Random, usize) -> ExternalEvent; 17] = [
        crash_head,
        crash_worker,
        crash_machine,
        cut,
        redial,
        slow_journal,
        fill_journal,
        stall_policy,
        slow_disk,
        fill_disk,
        step_clock,
        step_head_clock,
        kill_executor,
        break_mps,
        lose_gpu,
        xid,
        look,
    ];
    for kind in kinds {
        let most =
            if random.chance(0.65) { random.between(1, 3 + 2 * scenario.shapes.len() as u64) } else { 0 };
        for _ in 0..most {
            let at = random_time(&mut random, scenario);
            let node = random.between(0, scenario.shapes.len() as u64 - 1) as usize;
            scenario.external_events.push((at, kind(&mut random, node)));
        }
    }
    draw_gpu_faults(&mut random, scenario);
    draw_repeated_faults(&mut random, scenario);
    draw_outage(&mut random, scenario);
}

/// Sometimes adds a general outage: the head and all workers, or all machines, die at the same moment.
fn draw_outage(random: &mut Random, scenario: &mut Scenario) {
    if !random.chance(0.15) {
        return;
    }
    let at = random_time(random, scenario);
    let kind = *random.pick(&[crash_worker as fn(&mut Random, usize) -> ExternalEvent, crash_machine]);
    scenario.external_events.push((at, crash_head(random, 0)));
    for node in 0..scenario.shapes.len() {
        scenario.external_events.push((at, kind(random, node)));
    }
}

/// Adds faults of GPUs at times when jobs may run on them. Most lost GPUs are repaired.
fn draw_gpu_faults(random: &mut Random, scenario: &mut Scenario) {
    let submits =
        scenario.external_events.iter().filter(|(_, event)| matches!(event, ExternalEvent::Submit(_)));
    for submitted_at in submits.map(|(at, _)| *at).collect::<Vec<_>>() {
        if random.chance(0.4) {
            let kinds = [
                break_mps as fn(&mut Random, usize) -> ExternalEvent,
                break_mps,
                lose_gpu,
                look,
                crash_worker,
                kill_executor,
            ];
            let kind = *random.pick(&kinds);
            let node = random.between(0, scenario.shapes.len() as u64 - 1) as usize;
            let event = kind(random, node);
            for _ in 0..random.between(1, 3) {
                let at = submitted_at + random.span((Span::from_millis(500), Span::from_secs(200)));
                scenario.external_events.push((at.min(scenario.quiet_at), event.clone()));
            }
            if let (ExternalEvent::LoseGpu { node, .. }, true) = (event, random.chance(0.7)) {
                let restart = ExternalEvent::CrashWorker { node, down_for: Span::from_secs(1) };
                let at = submitted_at + random.span((Span::from_secs(200), Span::from_secs(600)));
                scenario.external_events.push((at.min(scenario.quiet_at), restart));
            }
        }
    }
}

/// Repeats some faults shortly afterwards in another form.
fn draw_repeated_faults(random: &mut Random, scenario: &mut Scenario) {
    let struck: Vec<(Time, usize)> =
        scenario.external_events.iter().filter_map(|(at, event)| Some((*at, event.struck_node()?))).collect();
    for (at, node) in struck {
        if random.chance(0.3) {
            let kinds = [
                crash_head as fn(&mut Random, usize) -> ExternalEvent,
                crash_worker,
                cut,
                redial,
                fill_journal,
                slow_disk,
                fill_disk,
                break_mps,
                look,
            ];
            let kind = *random.pick(&kinds);
            let later = at + random.span((Span::from_millis(1), Span::from_secs(60)));
            scenario.external_events.push((later.min(scenario.quiet_at), kind(random, node)));
        }
    }
}

fn crash_head(random: &mut Random, _: usize) -> ExternalEvent {
    ExternalEvent::CrashHead { effects_lost: random.between(0, 3) as u32, down_for: random.span(ANY) }
}

fn crash_worker(random: &mut Random, node: usize) -> ExternalEvent {
    ExternalEvent::CrashWorker { node, down_for: random.span(ANY) }
}

fn crash_machine(random: &mut Random, node: usize) -> ExternalEvent {
    let back = random.span((Span::from_secs(20), Span::from_secs(1_200)));
    ExternalEvent::CrashMachine {
        node,
        down_for: random.chance(0.85).then_some(back),
        disk: if random.chance(0.8) { Disk::Kept } else { Disk::Wiped },
    }
}

fn cut(random: &mut Random, node: usize) -> ExternalEvent {
    let (length, head_notices, worker_notices) =
        (random.span(ANY), random.span(NOTICE_DELAY), random.span(NOTICE_DELAY));
    ExternalEvent::Cut { node, length, head_notices, worker_notices }
}

fn redial(random: &mut Random, node: usize) -> ExternalEvent {
    let (times, lag) =
        (random.between(1, 5) as u32, random.span((Span::from_millis(1), Span::from_secs(30))));
    ExternalEvent::Redial { node, times, lag }
}

fn slow_journal(random: &mut Random, _: usize) -> ExternalEvent {
    let commit = random.span((Span::from_millis(5), Span::from_secs(40)));
    ExternalEvent::SlowJournal { length: random.span(ANY), commit }
}

fn fill_journal(random: &mut Random, _: usize) -> ExternalEvent {
    ExternalEvent::FillJournal { length: random.span(ANY) }
}

fn stall_policy(random: &mut Random, _: usize) -> ExternalEvent {
    ExternalEvent::StallPolicy { length: random.span(ANY) }
}

fn fill_disk(random: &mut Random, node: usize) -> ExternalEvent {
    ExternalEvent::FillDisk { node, length: random.span(ANY) }
}

fn slow_disk(random: &mut Random, node: usize) -> ExternalEvent {
    let write = random.span((Span::from_millis(10), Span::from_secs(30)));
    ExternalEvent::SlowDisk { node, length: random.span(ANY), write }
}

fn step_clock(random: &mut Random, node: usize) -> ExternalEvent {
    ExternalEvent::StepClock { node, step: step(random) }
}

fn step_head_clock(random: &mut Random, _: usize) -> ExternalEvent {
    ExternalEvent::StepHeadClock(step(random))
}

fn step(random: &mut Random) -> ClockStep {
    let span = random.span((Span::from_millis(10), Span::from_secs(7_200)));
    if random.chance(0.5) { ClockStep::Ahead(span) } else { ClockStep::Back(span) }
}

fn kill_executor(random: &mut Random, node: usize) -> ExternalEvent {
    ExternalEvent::KillExecutor { node, number: random.between(0, 11) as usize }
}

fn break_mps(random: &mut Random, node: usize) -> ExternalEvent {
    let attribution = *random.pick(&[FaultAttribution::Culprit, FaultAttribution::Unknown]);
    ExternalEvent::BreakMps { node, number: random.between(0, 11) as usize, attribution }
}

fn lose_gpu(random: &mut Random, node: usize) -> ExternalEvent {
    ExternalEvent::LoseGpu { node, number: random.between(0, 11) as usize }
}

fn xid(random: &mut Random, node: usize) -> ExternalEvent {
    ExternalEvent::Xid {
        node,
        number: random.between(0, 11) as usize,
        code: *random.pick(&[31, 31, 45, 48, 79]),
    }
}

fn look(random: &mut Random, node: usize) -> ExternalEvent {
    let foreign_memory = Bytes(random.between(0, 4) * random.between(0, 4 << 30));
    let observed = *random.pick(&[ObservedMemory::AsRequested, ObservedMemory::OverRequest]);
    ExternalEvent::Look { node, foreign_memory, observed }
}
