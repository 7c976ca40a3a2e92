//! Trouble of all kinds.
//!
//! Links are noticed to be broken within 40 s and nothing takes longer than two minutes to stop, so the
//! head's patience of 300 s is what its documentation asks for.

use cohabit_types::{Bytes, Span, Time};

use super::moment;
use crate::machine::{Appetite, Blame, Disk};
use crate::random::Random;
use crate::scenario::{Act, Scenario};
use crate::wall_clock::Step;

/// Spans from hardly any to so long that a node is given up.
const ANY: (Span, Span) = (Span::from_millis(10), Span::from_secs(1_200));
/// How long it takes to notice that a link is broken.
const NOTICED: (Span, Span) = (Span::from_millis(1), Span::from_secs(40));

/// Puts trouble into the scenario.
pub(super) fn trouble(seed: u64, scenario: &mut Scenario) {
    let mut random = Random::stream(seed, "faults");
    let kinds: [fn(&mut Random, usize) -> Act; 17] = [
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
            let at = moment(&mut random, scenario);
            let node = random.between(0, scenario.shapes.len() as u64 - 1) as usize;
            scenario.acts.push((at, kind(&mut random, node)));
        }
    }
    strike_at_work(&mut random, scenario);
    strike_twice(&mut random, scenario);
    strike_all(&mut random, scenario);
}

/// Now and then the lights go out: the head and all workers, or all machines, die at the same moment.
fn strike_all(random: &mut Random, scenario: &mut Scenario) {
    if !random.chance(0.15) {
        return;
    }
    let at = moment(random, scenario);
    let kind = *random.pick(&[crash_worker as fn(&mut Random, usize) -> Act, crash_machine]);
    scenario.acts.push((at, crash_head(random, 0)));
    for node in 0..scenario.shapes.len() {
        scenario.acts.push((at, kind(random, node)));
    }
}

/// GPUs have trouble when something may run on them; somebody looks after most of those that are lost.
fn strike_at_work(random: &mut Random, scenario: &mut Scenario) {
    let submits = scenario.acts.iter().filter(|(_, act)| matches!(act, Act::Submit(_)));
    for submitted_at in submits.map(|(at, _)| *at).collect::<Vec<_>>() {
        if random.chance(0.4) {
            let kinds = [
                break_mps as fn(&mut Random, usize) -> Act,
                break_mps,
                lose_gpu,
                look,
                crash_worker,
                kill_executor,
            ];
            let kind = *random.pick(&kinds);
            let node = random.between(0, scenario.shapes.len() as u64 - 1) as usize;
            let act = kind(random, node);
            for _ in 0..random.between(1, 3) {
                let at = submitted_at + random.span((Span::from_millis(500), Span::from_secs(200)));
                scenario.acts.push((at.min(scenario.quiet_at), act.clone()));
            }
            if let (Act::LoseGpu { node, .. }, true) = (act, random.chance(0.7)) {
                let restart = Act::CrashWorker { node, down_for: Span::from_secs(1) };
                let at = submitted_at + random.span((Span::from_secs(200), Span::from_secs(600)));
                scenario.acts.push((at.min(scenario.quiet_at), restart));
            }
        }
    }
}

/// Trouble seldom comes alone: some of it comes again shortly afterwards, in another form.
fn strike_twice(random: &mut Random, scenario: &mut Scenario) {
    let struck: Vec<(Time, usize)> =
        scenario.acts.iter().filter_map(|(at, act)| Some((*at, node(act)?))).collect();
    for (at, node) in struck {
        if random.chance(0.3) {
            let kinds = [
                crash_head as fn(&mut Random, usize) -> Act,
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
            scenario.acts.push((later.min(scenario.quiet_at), kind(random, node)));
        }
    }
}

const fn node(act: &Act) -> Option<usize> {
    match act {
        Act::CrashWorker { node, .. }
        | Act::CrashMachine { node, .. }
        | Act::Cut { node, .. }
        | Act::Redial { node, .. }
        | Act::SlowDisk { node, .. }
        | Act::FillDisk { node, .. }
        | Act::StepClock { node, .. }
        | Act::KillExecutor { node, .. }
        | Act::BreakMps { node, .. }
        | Act::LoseGpu { node, .. }
        | Act::Xid { node, .. }
        | Act::Look { node, .. } => Some(*node),
        Act::CrashHead { .. }
        | Act::SlowJournal { .. }
        | Act::FillJournal { .. }
        | Act::StallPolicy { .. }
        | Act::StepHeadClock(_) => Some(0),
        Act::Submit(_) | Act::Change { .. } | Act::Drain(_) | Act::Resume(_) => None,
    }
}

fn crash_head(random: &mut Random, _: usize) -> Act {
    Act::CrashHead { effects_lost: random.between(0, 3) as u32, down_for: random.span(ANY) }
}

fn crash_worker(random: &mut Random, node: usize) -> Act {
    Act::CrashWorker { node, down_for: random.span(ANY) }
}

fn crash_machine(random: &mut Random, node: usize) -> Act {
    let back = random.span((Span::from_secs(20), Span::from_secs(1_200)));
    Act::CrashMachine {
        node,
        down_for: random.chance(0.85).then_some(back),
        disk: if random.chance(0.8) { Disk::Kept } else { Disk::Wiped },
    }
}

fn cut(random: &mut Random, node: usize) -> Act {
    let (length, head_notices, worker_notices) =
        (random.span(ANY), random.span(NOTICED), random.span(NOTICED));
    Act::Cut { node, length, head_notices, worker_notices }
}

fn redial(random: &mut Random, node: usize) -> Act {
    let (times, lag) =
        (random.between(1, 5) as u32, random.span((Span::from_millis(1), Span::from_secs(30))));
    Act::Redial { node, times, lag }
}

fn slow_journal(random: &mut Random, _: usize) -> Act {
    let commit = random.span((Span::from_millis(5), Span::from_secs(40)));
    Act::SlowJournal { length: random.span(ANY), commit }
}

fn fill_journal(random: &mut Random, _: usize) -> Act {
    Act::FillJournal { length: random.span(ANY) }
}

fn stall_policy(random: &mut Random, _: usize) -> Act {
    Act::StallPolicy { length: random.span(ANY) }
}

fn fill_disk(random: &mut Random, node: usize) -> Act {
    Act::FillDisk { node, length: random.span(ANY) }
}

fn slow_disk(random: &mut Random, node: usize) -> Act {
    let write = random.span((Span::from_millis(10), Span::from_secs(30)));
    Act::SlowDisk { node, length: random.span(ANY), write }
}

fn step_clock(random: &mut Random, node: usize) -> Act {
    Act::StepClock { node, step: step(random) }
}

fn step_head_clock(random: &mut Random, _: usize) -> Act {
    Act::StepHeadClock(step(random))
}

fn step(random: &mut Random) -> Step {
    let span = random.span((Span::from_millis(10), Span::from_secs(7_200)));
    if random.chance(0.5) { Step::Ahead(span) } else { Step::Back(span) }
}

fn kill_executor(random: &mut Random, node: usize) -> Act {
    Act::KillExecutor { node, number: random.between(0, 11) as usize }
}

fn break_mps(random: &mut Random, node: usize) -> Act {
    let blame = *random.pick(&[Blame::Culprit, Blame::Nobody]);
    Act::BreakMps { node, number: random.between(0, 11) as usize, blame }
}

fn lose_gpu(random: &mut Random, node: usize) -> Act {
    Act::LoseGpu { node, number: random.between(0, 11) as usize }
}

fn xid(random: &mut Random, node: usize) -> Act {
    Act::Xid { node, number: random.between(0, 11) as usize, code: *random.pick(&[31, 31, 45, 48, 79]) }
}

fn look(random: &mut Random, node: usize) -> Act {
    let strangers = Bytes(random.between(0, 4) * random.between(0, 4 << 30));
    let appetite = *random.pick(&[Appetite::Modest, Appetite::Greedy]);
    Act::Look { node, strangers, appetite }
}
