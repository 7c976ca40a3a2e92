//! Draws a scenario from a seed: cluster, jobs and faults, each from a stream of its own.
//!
//! Whether a kind of fault occurs at all, and how fast network and policy are, is drawn as well. Seeds that
//! lack one kind of fault see more of another.

mod applications;
mod faults;
mod host_ranges;
mod idleness;
mod jobs;
mod outages;
mod random_time;
mod reservations;
mod shares;
mod short_arrays;
mod suspensions;

use cohabit_policy::POLICY_NAMES;
use cohabit_scheduler_core::Config;
use cohabit_types::{Bytes, DeviceKind, Span, Time};

use self::random_time::random_time;
use crate::hostile::HostileRequest;
use crate::impostor::Lie;
use crate::machine_spec::MachineSpec;
use crate::random::Random;
use crate::scenario::{ExternalEvent, Scenario};

/// What is fixed instead of drawn.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The number of nodes.
    pub nodes: Option<u32>,
    /// The number of submissions.
    pub jobs: Option<u32>,
}

impl Scenario {
    /// Draws the scenario of this seed.
    #[must_use]
    pub fn draw(seed: u64, options: &Options) -> Scenario {
        let mut random = Random::stream(seed, "cluster");
        let crowd = Crowd::draw(seed);
        let count = random.between(1, crowd.most_nodes) as u32;
        let kinds = if random.chance(0.4) { &[DeviceKind::Gpu][..] } else { &MIXED };
        let shapes: Vec<MachineSpec> = (0..options.nodes.unwrap_or(count).max(1))
            .map(|number| shape(&mut random, kinds, number))
            .collect();
        let quiet_at = Time::EPOCH + random.span((Span::from_secs(600), Span::from_secs(3 * 3_600)));
        let mut scenario = Scenario { quiet_at, ..settings(seed, &mut random, Scenario::calm(shapes)) };
        scenario.policy = policy(&mut random, crowd.robust_chance);
        let count = random.between(crowd.jobs.0, crowd.jobs.1) as u32;
        jobs::submit(seed, options.jobs.unwrap_or(count), &mut scenario);
        applications::draw(seed, &mut scenario);
        host_ranges::draw(seed, &mut scenario);
        draw_agents(seed, &mut scenario);
        jobs::draw_changes(seed, &mut scenario);
        faults::draw_faults(seed, &mut scenario);
        suspensions::draw_suspensions(seed, &mut scenario);
        outages::draw_outages(seed, &mut scenario);
        draw_hostile_requests(seed, &mut scenario);
        draw_lies(seed, &mut scenario);
        let mut random = Random::stream(seed, "running limit");
        scenario.config.max_running_jobs = random.chance(0.3).then(|| random.between(1, 4));
        scenario.config.fair_share = Random::stream(seed, "fair share").chance(0.8);
        let spans = [
            Span::ZERO,
            Span::from_millis(60),
            Span::from_secs(30),
            Span::from_secs(300),
            Span::from_secs(600),
        ];
        scenario.config.prefetch = *Random::stream(seed, "prefetch").pick(&spans);
        shares::draw(seed, &mut scenario);
        reservations::draw(seed, &mut scenario);
        idleness::draw(seed, &mut scenario);
        short_arrays::draw(seed, &mut scenario);
        scenario
    }
}

/// Mostly lets agents decide where they can.
fn draw_agents(seed: u64, scenario: &mut Scenario) {
    let mut random = Random::stream(seed, "agents");
    let has_agents = scenario.policy.starts_with("maifs") && random.chance(0.7);
    scenario.random_agents = has_agents.then_some(seed);
}

/// Adds requests of a hostile user, in half of the scenarios.
fn draw_hostile_requests(seed: u64, scenario: &mut Scenario) {
    let mut random = Random::stream(seed, "hostile");
    let count = if random.chance(0.5) { random.between(1, 40) } else { 0 };
    for _ in 0..count {
        let request = HostileRequest::draw(&mut random, scenario.shapes.len());
        let at = random_time(&mut random, scenario);
        scenario.external_events.push((at, ExternalEvent::Hostile(request)));
    }
}

/// Adds links of a worker that lies, in half of the scenarios.
fn draw_lies(seed: u64, scenario: &mut Scenario) {
    let mut random = Random::stream(seed, "impostor");
    let count = if random.chance(0.5) { random.between(1, 40) } else { 0 };
    for _ in 0..count {
        let lie = Lie::draw(&mut random);
        let at = random_time(&mut random, scenario);
        scenario.external_events.push((at, ExternalEvent::Impostor(lie)));
    }
}

/// The kinds of devices in mixed clusters.
const MIXED: [DeviceKind; 3] = [DeviceKind::Host, DeviceKind::Fake, DeviceKind::Gpu];

fn shape(random: &mut Random, kinds: &[DeviceKind], number: u32) -> MachineSpec {
    let kind = *random.pick(kinds);
    let memory = Bytes(random.between(8, 80) << 30);
    MachineSpec {
        cpus: random.between(2, 32) as u32,
        memory: Bytes(random.between(8, 256) << 30),
        devices: random.between(1, 4) as u32,
        kind,
        device_memory: (kind != DeviceKind::Host).then_some(memory),
        // The first jobs meet a port that is in use.
        foreign_ports: 3,
        ..MachineSpec::new(&format!("node-{number}"), 0)
    }
}

/// The policies that order jobs by what is learned of their run times.
const ROBUST: [&str; 2] = ["a-srpt", "hybrid"];

/// Whether jobs have to wait for long, so that some are stopped for others.
struct Crowd {
    most_nodes: u64,
    jobs: (u64, u64),
    /// Probability of a policy that ships.
    robust_chance: f64,
}

impl Crowd {
    fn draw(seed: u64) -> Crowd {
        match Random::stream(seed, "crowd").chance(0.35) {
            true => Crowd { most_nodes: 2, jobs: (20, 50), robust_chance: 0.9 },
            false => Crowd { most_nodes: 5, jobs: (2, 25), robust_chance: 0.3 },
        }
    }
}

/// Any policy, and with some probability one of those that ship. These mostly stop jobs and serve those that
/// waited long much sooner than by default, because no scenario takes days.
fn policy(random: &mut Random, robust_chance: f64) -> String {
    if !random.chance(robust_chance) {
        return (*random.pick(&POLICY_NAMES)).to_owned();
    }
    let name = *random.pick(&ROBUST);
    let stops = *random.pick(&["quantum=1,stop-ratio=0,margin=0.1", "quantum=60,stop-ratio=0", ""]);
    let lane = *random.pick(&["lane=0.5,patience=1,patience-base=100", "lane=1,patience=0", ""]);
    let options: Vec<&str> = [stops, lane].into_iter().filter(|it| !it.is_empty()).collect();
    match options.as_slice() {
        [] => name.to_owned(),
        options => format!("{name}:{}", options.join(",")),
    }
}

/// When jobs leave memory: mostly never, or so soon that some are queued again afterwards.
fn archive_after(seed: u64) -> Span {
    let mut random = Random::stream(seed, "archive");
    match random.chance(0.3) {
        true => random.span((Span::from_secs(30), Span::from_secs(900))),
        false => Span::from_secs(365 * 86_400),
    }
}

fn settings(seed: u64, random: &mut Random, calm: Scenario) -> Scenario {
    let slow_network = random.chance(0.25);
    let slow_policy = random.chance(0.25);
    let forgetful = random.chance(0.1);
    let slow_journal = random.chance(0.3);
    let default = Config::default();
    Scenario {
        config: Config {
            retention: if forgetful { Span::from_secs(1_800) } else { Span::from_secs(30 * 86_400) },
            archive_after: archive_after(seed),
            node_failures: random.between(0, 5) as u32,
            ..default
        },
        orphan_grace: random.span((Span::from_secs(30), Span::from_secs(120))),
        heartbeat: random.span((Span::from_secs(2), Span::from_secs(30))),
        snapshot_every: random.between(5, 200) as usize,
        delay: if slow_network { (Span::from_millis(1), Span::from_secs(3)) } else { calm.delay },
        planning: if slow_policy { (Span::from_millis(100), Span::from_secs(120)) } else { calm.planning },
        planning_limit: random.span((Span::from_secs(1), Span::from_secs(90))),
        commit: if slow_journal { (Span::from_millis(1), Span::from_secs(2)) } else { calm.commit },
        ..calm
    }
}
