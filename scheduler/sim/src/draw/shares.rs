//! Draws tables of fair share, which an admin applies one after the other, and the quality of service of
//! jobs.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::{Qos, RunningLimits, ShareProject, ShareTable, Span, UserLimits};

use super::random_time::random_time;
use crate::random::Random;
use crate::scenario::{ExternalEvent, Scenario};

/// After the quiet phase has begun, the table without limits is applied so often, each time after twice as
/// long: the head may be down at first.
const LAST_TABLES: u32 = 10;

/// Draws both, in two thirds of the scenarios.
pub(super) fn draw(seed: u64, scenario: &mut Scenario) {
    let mut random = Random::stream(seed, "shares");
    if !random.chance(0.67) {
        return;
    }
    for submission in &mut scenario.submissions {
        // What takes places that nobody else wants has to give them back.
        let words = if submission.spec.preemptible { &Qos::ALL[..] } else { &Qos::ALL[1..] };
        submission.spec.qos = *random.pick(words);
    }
    let users: BTreeSet<String> = scenario.submissions.iter().map(|it| it.user.clone()).collect();
    let devices: u64 = scenario.shapes.iter().map(|shape| u64::from(shape.devices)).sum();
    for _ in 0..random.between(1, 4) {
        let table = Box::new(table(&mut random, &users, devices));
        let at = random_time(&mut random, scenario);
        scenario.external_events.push((at, ExternalEvent::ApplyShares(table)));
    }
    for number in 0..LAST_TABLES {
        let at = scenario.quiet_at + Span::from_secs(60 << number);
        scenario.external_events.push((at, ExternalEvent::ApplyShares(Box::default())));
    }
}

fn table(random: &mut Random, users: &BTreeSet<String>, devices: u64) -> ShareTable {
    let mut projects: BTreeMap<String, ShareProject> = BTreeMap::new();
    for user in users {
        let name = *random.pick(&["vision", "speech", ""]);
        if !name.is_empty() {
            projects.entry(name.to_owned()).or_default().users.insert(user.clone());
        }
    }
    for project in projects.values_mut() {
        project.weight = random.between(500, 3_000) as u32;
        project.guaranteed = if random.chance(0.4) { 1_000 * random.between(0, devices / 2) } else { 0 };
        project.running = limits(random, devices);
    }
    ShareTable {
        half_life: random.span((Span::from_secs(3_600), Span::from_secs(7 * 86_400))),
        projects,
        open_part: if random.chance(0.3) { random.between(0, 500) as u32 } else { 0 },
        keep_for: random.span((Span::from_secs(1), Span::from_secs(900))),
        user: UserLimits {
            running: limits(random, devices),
            high_gpu_hours: random.between(0, 2) as u32,
            ..UserLimits::default()
        },
        ..ShareTable::default()
    }
}

/// Mostly none.
fn limits(random: &mut Random, devices: u64) -> RunningLimits {
    RunningLimits {
        gpus: random.chance(0.2).then(|| 1_000 * random.between(1, devices)),
        jobs: random.chance(0.2).then(|| random.between(1, 4)),
    }
}
