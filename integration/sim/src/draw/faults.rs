//! Trouble of all kinds.
//!
//! Links are noticed to be broken within 40 s and nothing takes longer than two minutes to stop, so the
//! head's patience of 300 s is what its documentation asks for.

use cohabit_proto::{Span, Time};

use super::moment;
use crate::machine::Disk;
use crate::random::Random;
use crate::scenario::{Act, Scenario};

/// Spans from hardly any to so long that a node is given up.
const ANY: (Span, Span) = (Span::from_millis(10), Span::from_secs(1_200));
/// How long it takes to notice that a link is broken.
const NOTICED: (Span, Span) = (Span::from_millis(1), Span::from_secs(40));

/// Puts trouble into the scenario.
pub(super) fn trouble(seed: u64, scenario: &mut Scenario) {
    let mut random = Random::stream(seed, "faults");
    let kinds: [fn(&mut Random, usize) -> Act; 4] = [crash_head, crash_worker, crash_machine, cut];
    for kind in kinds {
        let most =
            if random.chance(0.65) { random.between(1, 3 + 2 * scenario.shapes.len() as u64) } else { 0 };
        for _ in 0..most {
            let at = moment(&mut random, scenario);
            let node = random.between(0, scenario.shapes.len() as u64 - 1) as usize;
            scenario.acts.push((at, kind(&mut random, node)));
        }
    }
    strike_twice(&mut random, scenario);
}

/// Trouble seldom comes alone: some of it comes again shortly afterwards, in another form.
fn strike_twice(random: &mut Random, scenario: &mut Scenario) {
    let struck: Vec<(Time, usize)> =
        scenario.acts.iter().filter_map(|(at, act)| Some((*at, node(act)?))).collect();
    for (at, node) in struck {
        if random.chance(0.3) {
            let kind = *random.pick(&[crash_head as fn(&mut Random, usize) -> Act, crash_worker, cut]);
            let later = at + random.span((Span::from_millis(1), Span::from_secs(60)));
            scenario.acts.push((later.min(scenario.quiet_at), kind(random, node)));
        }
    }
}

const fn node(act: &Act) -> Option<usize> {
    match act {
        Act::CrashWorker { node, .. } | Act::CrashMachine { node, .. } | Act::Cut { node, .. } => Some(*node),
        Act::CrashHead { .. } => Some(0),
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
