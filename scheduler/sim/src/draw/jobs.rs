//! Draws jobs of all kinds, and changes that users make.
//!
//! Every job fits the empty cluster, so every accepted job can end; some only by a cancellation, which
//! happens in the quiet phase at the latest.

use std::collections::BTreeMap;

use cohabit_types::{
    Array, Bytes, CodeSnapshot, ComputeLimit, ContentHash, Demand, DependencyKind, DeviceKind,
    EnforcementRequirement, GpuRequest, HeldFor, JobChange, JobSpec, LaunchMode, ModelDescription,
    PipelineStage, ReservationTerms, RetryPolicy, Share, Sharing, Signal, Slowdown, Span, Spread, Stop, Time,
    WarningSignal,
};

use super::random_time::random_time;
use crate::machine_spec::MachineSpec;
use crate::program::{MpsAttachment, ProgressReporting, SigtermBehaviour, SimProgram, StartBehaviour};
use crate::random::Random;
use crate::scenario::{ExternalEvent, Scenario, ScenarioSubmission};

pub(super) const CHANGES: [JobChange; 5] =
    [JobChange::Cancel, JobChange::Hold, JobChange::Release, JobChange::Requeue, JobChange::Kill];

/// Adds this many submissions.
pub(super) fn submit(seed: u64, count: u32, scenario: &mut Scenario) {
    let mut random = Random::stream(seed, "jobs");
    let mut predictions = Random::stream(seed, "predictions");
    let mut times: Vec<Time> = (0..count).map(|_| random_time(&mut random, scenario)).collect();
    times.sort_unstable();
    for at in times {
        let index = scenario.submissions.len();
        let spec = spec(&mut random, at, &scenario.shapes);
        let spec = with_known_memory(&mut predictions, spec, &scenario.shapes);
        let user = (*random.pick(&["ada", "grace", "alan"])).to_owned();
        let after =
            if index > 0 && random.chance(0.15) { vec![dependency(&mut random, index)] } else { vec![] };
        scenario.submissions.push(ScenarioSubmission { spec, user, after, parent: None });
        scenario.external_events.push((at, ExternalEvent::Submit(index)));
    }
}

/// Adds cancellations, holds, releases and requeues, and drains and resumes nodes.
pub(super) fn draw_changes(seed: u64, scenario: &mut Scenario) {
    let mut random = Random::stream(seed, "people");
    for _ in 0..random.between(0, 1 + scenario.submissions.len() as u64 / 2) {
        let change = ExternalEvent::Change { change: *random.pick(&CHANGES), back: random.between(0, 1_000) };
        scenario.external_events.push((random_time(&mut random, scenario), change));
    }
    draw_early_changes(&mut random, scenario);
    for _ in 0..random.between(0, 2) {
        let node = random.between(0, scenario.shapes.len() as u64 - 1) as usize;
        scenario.external_events.push((random_time(&mut random, scenario), ExternalEvent::Drain(node)));
        scenario.external_events.push((random_time(&mut random, scenario), ExternalEvent::Resume(node)));
    }
}

/// Adds changes shortly after some submissions.
fn draw_early_changes(random: &mut Random, scenario: &mut Scenario) {
    let submits =
        scenario.external_events.iter().filter(|(_, event)| matches!(event, ExternalEvent::Submit(_)));
    for at in submits.map(|(at, _)| *at).collect::<Vec<_>>() {
        if random.chance(0.2) {
            let later = at + random.span((Span::from_millis(1), Span::from_secs(60)));
            scenario
                .external_events
                .push((later, ExternalEvent::Change { change: *random.pick(&CHANGES), back: 0 }));
        }
    }
}

fn dependency(random: &mut Random, index: usize) -> (usize, DependencyKind) {
    let when = *random.pick(&[DependencyKind::AfterOk, DependencyKind::AfterAny, DependencyKind::AfterNotOk]);
    (random.between(0, index as u64 - 1) as usize, when)
}

/// The distribution of the jobs.
struct WorkloadProfile {
    /// Probability that a job asks for a part of a device.
    parts: f64,
    /// The shortest run time.
    shortest: Span,
}

impl WorkloadProfile {
    /// On clusters with GPUs only, most jobs share a GPU and run long enough to overlap.
    fn on(shapes: &[MachineSpec]) -> WorkloadProfile {
        match shapes.iter().all(|shape| shape.kind == DeviceKind::Gpu) {
            true => WorkloadProfile { parts: 0.85, shortest: Span::from_secs(20) },
            false => WorkloadProfile { parts: 0.5, shortest: Span::from_millis(100) },
        }
    }
}

fn spec(random: &mut Random, at: Time, shapes: &[MachineSpec]) -> JobSpec {
    let profile = &WorkloadProfile::on(shapes);
    let demand = demand(random, shapes, profile);
    JobSpec {
        demand,
        preemptible: random.chance(0.6),
        model: random.chance(0.5).then(|| model(random, demand.total_devices())),
        launch: if random.chance(0.2) { LaunchMode::PerGpu } else { LaunchMode::PerNode },
        array: random.chance(0.12).then(|| array(random)),
        begin: random.chance(0.1).then(|| at + random.span((Span::from_secs(1), Span::from_secs(900)))),
        priority: random.between(0, 4) as i32 - 2,
        time_limit: random.chance(0.25).then(|| random.span((Span::from_secs(5), Span::from_secs(600)))),
        retry: RetryPolicy {
            limit: random.between(0, 3) as u32,
            backoff: random.span((Span::from_secs(1), Span::from_secs(30))),
            backoff_cap: Span::from_secs(120),
        },
        stop: stop(random),
        held: random.chance(0.05),
        code: random.chance(0.2).then(code),
        ..program(random, profile).job()
    }
}

/// A snapshot of the code of a simulated program.
fn code() -> CodeSnapshot {
    CodeSnapshot { manifest: ContentHash([1; 32]), folder: "/".into(), files: 1, bytes: Bytes(1) }
}

fn program(random: &mut Random, profile: &WorkloadProfile) -> SimProgram {
    let starting = random.span((Span::from_millis(10), Span::from_secs(20)));
    let ending = random.span((Span::from_millis(1), Span::from_secs(90)));
    let alone = random.span((profile.shortest, Span::from_secs(1_500)));
    SimProgram {
        solo_duration: if random.chance(0.94) { alone } else { SimProgram::ENDLESS },
        steps: random.between(1, 2_000),
        restart_duration: Span::ZERO,
        reports: if random.chance(0.8) { ProgressReporting::Progress } else { ProgressReporting::Never },
        busy: 0.1 + 0.9 * random.fraction(),
        gpu_memory: None,
        start: match random.fraction() {
            // Its paths do not answer.
            ..0.01 => StartBehaviour::Succeeds(SimProgram::ENDLESS),
            ..0.06 => StartBehaviour::Fails(starting),
            _ => StartBehaviour::Succeeds(starting),
        },
        exit: if random.chance(0.85) { 0 } else { random.between(1, 255) as i32 },
        failing_attempts: if random.chance(0.2) { random.between(1, 3) as u32 } else { 0 },
        mps_attachment: if random.chance(0.95) { MpsAttachment::Always } else { MpsAttachment::Never },
        on_term: *random.pick(&[
            SigtermBehaviour::Exits(ending),
            SigtermBehaviour::Checkpoints(ending),
            SigtermBehaviour::Ignores,
        ]),
        kill_delay: if random.chance(0.9) { Span::from_millis(20) } else { Span::from_secs(15) },
        leftover_duration: if random.chance(0.1) {
            random.span((Span::from_millis(1), Span::from_secs(10)))
        } else {
            Span::ZERO
        },
    }
}

/// A program like any other on a cluster of all kinds of devices.
pub(super) fn steady_program(random: &mut Random) -> SimProgram {
    program(random, &WorkloadProfile { parts: 0.0, shortest: Span::from_millis(100) })
}

/// A model trained on this many devices, in one or two stages.
fn model(random: &mut Random, devices: u32) -> ModelDescription {
    let first = random.between(1, u64::from(devices.max(1))) as u32;
    let mut stage = |replicas| PipelineStage {
        replicas,
        compute_seconds: 0.01 + 0.2 * random.fraction(),
        compute_seconds_on: BTreeMap::new(),
        activation_bytes: 1e8 * random.fraction(),
        gradient_bytes: 1e8 * random.fraction(),
    };
    let stages = [first, devices.saturating_sub(first)].into_iter().filter(|replicas| *replicas > 0);
    ModelDescription { stages: stages.map(&mut stage).collect(), ..ModelDescription::default() }
}

fn stop(random: &mut Random) -> Stop {
    let warning = WarningSignal { signal: Signal::USR1, before: Span::from_secs(random.between(0, 60)) };
    Stop { warning: random.chance(0.3).then_some(warning), grace: Span::from_secs(random.between(0, 45)) }
}

fn array(random: &mut Random) -> Array {
    let mut array = Array::from(0..=random.between(1, 8) as u32);
    array.at_once = random.chance(0.5).then(|| random.between(1, 3) as u32);
    array
}

/// A demand that these machines can satisfy.
fn demand(random: &mut Random, shapes: &[MachineSpec], profile: &WorkloadProfile) -> Demand {
    let nodes = if shapes.len() > 1 && random.chance(0.15) { 2 } else { 1 };
    let devices_in_all: u32 = shapes.iter().map(|shape| shape.devices).sum();
    let free = nodes == 1 && devices_in_all > 0 && random.chance(0.1);
    let mut hosts: Vec<&MachineSpec> = shapes.iter().collect();
    // Devices that may be on any nodes are only guaranteed if each of these nodes has the other resources.
    while !free && hosts.len() > nodes as usize {
        hosts.swap_remove(random.between(0, hosts.len() as u64 - 1) as usize);
    }
    let least = |of: fn(&MachineSpec) -> u64| hosts.iter().map(|shape| of(shape)).min().unwrap_or_default();
    let gpus = gpus(random, profile, least(|shape| u64::from(shape.devices)));
    let (gpus, spread) = match free {
        true => (GpuRequest::Whole(random.between(1, devices_in_all.into()) as u32), Spread::Free),
        false => (gpus, Spread::Even),
    };
    // A shared device keeps a reserve.
    let left = |shape: &MachineSpec| {
        shape.device_memory.map_or(u64::MAX >> 1, |it| it.saturating_sub(shape.sharing.reserve).0)
    };
    let device_memory = least(left);
    let is_part = matches!(gpus, GpuRequest::Part(_));
    let wants_memory = gpus != GpuRequest::Whole(0) && random.chance(if is_part { 0.8 } else { 0.3 });
    let enforceable = is_part && hosts.iter().all(|shape| shape.kind == DeviceKind::Gpu);
    Demand {
        has_code: false,
        spans_nodes: false,
        held_for: HeldFor::Unasked,
        reservations: ReservationTerms::default(),
        node: None,
        nodes,
        gpus,
        gpu_memory: wants_memory.then(|| gpu_memory(random, device_memory.min(80 << 30))),
        cpus: if random.chance(0.4) {
            random.between(0, least(|shape| u64::from(shape.cpus))) as u32
        } else {
            0
        },
        memory: Bytes(if random.chance(0.4) { random.between(0, least(|shape| shape.memory.0)) } else { 0 }),
        sharing: if random.chance(0.1) { Sharing::Exclusive } else { Sharing::Shared },
        spread,
        limits: if enforceable && random.chance(0.3) {
            EnforcementRequirement::Enforced
        } else {
            EnforcementRequirement::BestEffort
        },
        compute: if is_part && random.chance(0.3) { ComputeLimit::Capped } else { ComputeLimit::Open },
        gpu_processes: random.between(1, 3) as u32,
        max_slowdown: (is_part && random.chance(0.3)).then(|| Slowdown(random.between(1_000, 2_500) as u32)),
        account: None,
        up_to: None,
    }
}

/// Memory that is often small enough for others to fit beside it.
fn gpu_memory(random: &mut Random, most: u64) -> Bytes {
    let most = if random.chance(0.7) { most / 3 } else { most };
    Bytes(random.between(0, most))
}

/// Sometimes states the memory of the program, but not of the job: a predictor may know it. Now and then it
/// is more than a device has.
fn with_known_memory(random: &mut Random, spec: JobSpec, shapes: &[MachineSpec]) -> JobSpec {
    let largest = shapes.iter().filter_map(|shape| shape.device_memory).max().unwrap_or_default();
    let most = if random.chance(0.1) { largest.0 * 2 } else { largest.0 };
    let held = gpu_memory(random, most);
    let is_silent = matches!(spec.demand.gpus, GpuRequest::Part(_)) && spec.demand.gpu_memory.is_none();
    match is_silent && random.chance(0.7) {
        true => {
            let program = SimProgram { gpu_memory: Some(held), ..SimProgram::of(&spec) };
            JobSpec { entrypoint: program.job().entrypoint, ..spec }
        }
        false => spec,
    }
}

fn gpus(random: &mut Random, profile: &WorkloadProfile, most: u64) -> GpuRequest {
    let part = Share(*random.pick(&[100, 250, 300, 500, 500, 700, 999]));
    let whole = random.between(0, most) as u32;
    match random.chance(profile.parts) {
        true => GpuRequest::Part(part),
        false => GpuRequest::Whole(*random.pick(&[1, whole])),
    }
}
