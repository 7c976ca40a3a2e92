//! How long the hybrid takes to decide where one job goes among GPUs that all have three residents, and for a
//! whole plan while 10,000 jobs wait: run by hand, prints two tables.
//!
//! In the first, measured is `consider`, the whole decision, by the law and by a predictor that takes as long
//! for each set as a network does. "New" is a configuration that the policy never placed before, beside
//! companies that it never saw: the worst case. "Known" is one that it placed before, after one of the GPUs
//! changed.
//!
//! In the second, two or three jobs share each GPU, half of all are preemptible, and between two plans a
//! minute passes, one job ends and one arrives. With gangs, every eighth job asks for two, four or eight
//! whole GPUs. Measured is learning of the changes and planning, as the head would do it. The digest is
//! that of all plans: two versions of a policy with one digest make the same plans.
//!
//! An argument leaves out the rows of the second table without this text, and the first table.
#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "a bench measures real time")]
#![expect(clippy::print_stdout, reason = "a bench is read on a terminal")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on ends here")]

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cohabit_policy::interference::{
    AnalyticInterference, ColocationEstimate, ColocationSet, Configuration, GpuKind, Interference,
    InterferenceContext, MaxMinSharing, SoloMetrics, SoloMetricsTable,
};
use cohabit_policy::{
    Action, AttainedTime, DeviceAvailability, DeviceView, FreeNodes, JobTraits, NodeView, PendingJob, Plan,
    Policy, RunningJob, SharingMode, SharingTerms, View, ViewChange, parse_policy_with,
};
use cohabit_types::{
    Bytes, Demand, DeviceId, DeviceKind, Estimate, GpuRequest, JobId, LinkBandwidths, ModelDescription,
    NodeId, Placement, Share, Sharing, Span, Time,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

const DEVICES_ON_A_NODE: usize = 8;
const NETWORK: Duration = Duration::from_micros(42);
const SHIPPED: Duration = Duration::from_micros(8);

/// How full the GPUs are.
#[derive(Debug, Clone, Copy)]
struct Load {
    devices: usize,
    residents: u64,
    share: Share,
    memory: Option<Bytes>,
    gangs: Gangs,
}

/// Whether some jobs ask for several whole GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gangs {
    None,
    EveryEighth,
}

fn main() {
    let wanted = std::env::args().skip(1).find(|text| !text.starts_with('-'));
    if wanted.is_none() {
        print_decisions();
        println!();
    }
    print_plans(&wanted.unwrap_or_default());
}

/// The first table.
fn print_decisions() {
    println!("| GPUs | configurations | predictor | newcomer | p50, ms | p99, ms | most, ms |");
    println!("|---|---|---|---|---|---|---|");
    for (devices, configurations) in [(64, 30), (512, 30), (512, 200)] {
        let load =
            Load { residents: 3, share: Share(250), memory: Some(Bytes(8 << 30)), ..Load::alone(devices) };
        for (predictor, pause) in [("law", Duration::ZERO), ("42 us a set", NETWORK)] {
            let new: Vec<Duration> =
                (0..100).map(|seed| Bench::new(load, configurations, pause, seed).decide(0)).collect();
            print(devices, configurations, predictor, "new", new);
            let mut bench = Bench::new(load, configurations, pause, 7);
            for which in 0..configurations {
                bench.decide(which);
            }
            let known: Vec<Duration> = (0..500).map(|_| bench.step()).collect();
            print(devices, configurations, predictor, "known", known);
        }
    }
}

/// GPUs, residents of each, jobs that wait, gangs.
const ROWS: [(usize, u64, usize, Gangs); 6] = [
    (32, 2, 1_000, Gangs::None),
    (512, 2, 1_000, Gangs::None),
    (512, 2, 10_000, Gangs::None),
    (512, 3, 10_000, Gangs::None),
    (512, 2, 10_000, Gangs::EveryEighth),
    (512, 3, 10_000, Gangs::EveryEighth),
];

/// The second table.
fn print_plans(wanted: &str) {
    println!(
        "| what | jobs waiting | configurations | first plan, ms | p50, ms | p99, ms | most, ms | actions | \
         digest |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for (devices, residents, jobs, gangs) in ROWS {
        let with = if gangs == Gangs::None { "" } else { ", gangs" };
        let what = format!("{devices} GPUs, {residents} residents{with}");
        for configurations in [30, 200].into_iter().filter(|_| what.contains(wanted)) {
            let share = Share(1_000 / residents as u32);
            let load = Load { residents, share, gangs, ..Load::alone(devices) };
            let mut bench = Bench::new(load, configurations, SHIPPED, 7);
            (0..jobs).for_each(|_| bench.arrive());
            let first = bench.plan().as_secs_f64() * 1e3;
            (0..300).for_each(|_| _ = bench.go_on());
            let mut times: Vec<Duration> = (0..1_000).map(|_| bench.go_on()).collect();
            times.sort_unstable();
            let [p50, p99, most] = [0.5, 0.99, 1.0].map(|part| at_part(&times, part));
            let (waiting, actions, digest) = (bench.view.pending.len(), bench.actions, bench.digest.finish());
            println!(
                "| {what} | {waiting} | {configurations} | {first:.1} | {p50:.2} | {p99:.2} | {most:.2} | \
                 {actions} | {digest:016x} |"
            );
        }
    }
}

impl Load {
    /// So many GPUs, each with one job that takes it whole.
    const fn alone(devices: usize) -> Load {
        Load { devices, residents: 1, share: Share::WHOLE, memory: None, gangs: Gangs::None }
    }
}

/// Milliseconds at this part of sorted times.
fn at_part(times: &[Duration], part: f64) -> f64 {
    times[((times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3
}

fn print(devices: usize, configurations: usize, predictor: &str, newcomer: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let [p50, p99, most] = [0.5, 0.99, 1.0].map(|part| at_part(&times, part));
    println!("| {devices} | {configurations} | {predictor} | {newcomer} | {p50:.2} | {p99:.2} | {most:.2} |");
}

/// A predictor that takes its time.
#[derive(Debug)]
struct Slow(Duration);

impl Interference for Slow {
    fn predict(&self, sets: &[ColocationSet]) -> Vec<Vec<ColocationEstimate>> {
        let until = Instant::now() + self.0 * sets.len() as u32;
        let estimates = AnalyticInterference::<MaxMinSharing>::default().predict(sets);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        estimates
    }
}

/// A full cluster and a policy that was told of it.
struct Bench {
    draws: ChaCha8Rng,
    policy: Box<dyn Policy>,
    view: View,
    changes: Vec<ViewChange>,
    load: Load,
    configurations: usize,
    next: u64,
    /// Actions of all plans, and their digest.
    actions: usize,
    digest: DefaultHasher,
}

impl Bench {
    fn new(load: Load, configurations: usize, pause: Duration, seed: u64) -> Bench {
        let mut book = SoloMetricsTable::default();
        for which in 0..configurations {
            let utilization = Some(0.05 + 0.35 * which as f64 / configurations as f64);
            let solo = SoloMetrics { utilization, memory: Some(4e9), ..SoloMetrics::default() };
            let configuration = Configuration { model: model(which), ..Configuration::default() };
            book.insert(GpuKind::named("H200"), configuration, solo);
        }
        let interference = Arc::new(Slow(pause));
        let knowledge =
            InterferenceContext { interference, solos: Arc::new(book), ..InterferenceContext::default() };
        let mut bench = Bench {
            draws: ChaCha8Rng::seed_from_u64(seed),
            policy: parse_policy_with("hybrid", &knowledge).unwrap(),
            view: View { now: Time::EPOCH + Span::from_secs(10_000), ..View::default() },
            changes: Vec::new(),
            load,
            configurations,
            next: 1,
            actions: 0,
            digest: DefaultHasher::new(),
        };
        bench.view.nodes = (0..load.devices / DEVICES_ON_A_NODE).map(node).collect();
        for device in 0..load.devices {
            for _ in 0..load.residents {
                bench.take_as_resident(device);
            }
        }
        bench.policy.learn(&bench.view, &bench.view.as_changes());
        bench
    }

    /// How long the decision for a job of this configuration takes.
    fn decide(&mut self, which: usize) -> Duration {
        let job = self.job(which);
        let before = Instant::now();
        let decided = self.policy.dry_run(&self.view, &job);
        let took = before.elapsed();
        std::hint::black_box(decided).ok();
        took
    }

    /// On one GPU a job ends and another one comes; then somebody asks for a place.
    fn step(&mut self) -> Duration {
        let devices = self.view.nodes.len() * DEVICES_ON_A_NODE;
        let device = self.drawn(devices);
        let (node, place) = (device / DEVICES_ON_A_NODE, device % DEVICES_ON_A_NODE);
        let ended = self.view.nodes[node].devices[place].jobs[0];
        let gone = self.view.running[&ended].clone();
        let mut free = FreeNodes::new(&self.view.nodes);
        free.give_back(&gone.demand, &gone.placement);
        self.view.nodes[node] = free.node(node).clone();
        self.view.nodes[node].devices[place].jobs.retain(|job| *job != ended);
        let came = self.take_as_resident(device);
        let changes = [
            ViewChange::Gone(ended),
            ViewChange::Running(self.view.running[&came].clone()),
            ViewChange::Node(self.view.nodes[node].clone()),
        ];
        self.view.running.remove(&ended);
        self.policy.learn(&self.view, &changes);
        // What the watchdog asks for belongs to the plan that the change made necessary.
        self.policy.plan(&self.view);
        let which = self.drawn(self.configurations);
        self.decide(which)
    }

    /// A minute passes, one job ends, one arrives, and there is a plan; how long the plan took.
    fn go_on(&mut self) -> Duration {
        self.view.now += Span::from_secs(60);
        let ended = self.drawn(self.view.running.len());
        let running = self.view.running.values().nth(ended).cloned();
        running.iter().for_each(|running| self.leave(running, ViewChange::Gone(running.id)));
        self.arrive();
        self.plan()
    }

    fn arrive(&mut self) {
        let which = self.drawn(self.configurations);
        let mut job = self.job(which);
        if self.load.gangs == Gangs::EveryEighth && self.drawn(8) == 0 {
            let gpus = GpuRequest::Whole([2, 4, 8][self.drawn(3)]);
            job.demand = Demand { gpus, sharing: Sharing::Exclusive, gpu_memory: None, ..job.demand };
        }
        self.changes.push(ViewChange::Pending(job));
    }

    fn plan(&mut self) -> Duration {
        self.view.apply(&self.changes);
        let before = Instant::now();
        self.policy.learn(&self.view, &self.changes);
        let Plan { actions, wake } = self.policy.plan(&self.view);
        let took = before.elapsed();
        self.changes.clear();
        self.actions += actions.len();
        format!("{actions:?} {wake:?}").hash(&mut self.digest);
        for action in actions {
            match action {
                Action::Place { job, placement, .. } => {
                    let job = self.view.pending[&job].clone();
                    self.book(&placement, |free| free.take_as_resident(job.id, &job.demand, &placement));
                    self.changes.push(ViewChange::Running(job.placed(placement, self.view.now)));
                }
                // It is back in the queue at once.
                Action::Preempt { job, .. } | Action::Reclaim { job, .. } | Action::StopIdle { job, .. } => {
                    let stopped = self.view.running[&job].clone();
                    let again = PendingJob {
                        id: job,
                        priority: stopped.priority,
                        submitted_at: stopped.submitted_at,
                        eligible_at: self.view.now,
                        demand: stopped.demand,
                        attained: stopped.attained,
                        traits: stopped.traits.clone(),
                    };
                    self.leave(&stopped, ViewChange::Pending(again));
                }
                // No job here gives a range of cores.
                Action::Allot { .. } => {}
            }
        }
        self.view.apply(&self.changes);
        took
    }

    /// A running job gives its GPU back.
    fn leave(&mut self, running: &RunningJob, change: ViewChange) {
        self.book(&running.placement, |free| free.give_back(&running.demand, &running.placement));
        for part in &running.placement.parts {
            let node = self.view.nodes.iter_mut().find(|node| node.id == part.node);
            let node = node.expect("the node is there");
            node.devices.iter_mut().for_each(|device| device.jobs.retain(|job| *job != running.id));
            self.changes.push(ViewChange::Node(node.clone()));
        }
        self.changes.push(change);
        self.view.running.remove(&running.id);
    }

    fn book(&mut self, placement: &Placement, change: impl FnOnce(&mut FreeNodes<'_>)) {
        let mut free = FreeNodes::new(&self.view.nodes);
        change(&mut free);
        let touched = |node: &&NodeView| placement.parts.iter().any(|part| part.node == node.id);
        let nodes: Vec<ViewChange> = free.nodes().filter(touched).cloned().map(ViewChange::Node).collect();
        self.view.apply(&nodes);
        self.changes.extend(nodes);
    }

    /// A job of a drawn configuration runs on a device.
    fn take_as_resident(&mut self, device: usize) -> JobId {
        let which = self.drawn(self.configurations);
        let job = self.job(which);
        let (id, demand) = (job.id, job.demand);
        let position = device / DEVICES_ON_A_NODE;
        let host = &self.view.nodes[position];
        let chosen = host.devices[device % DEVICES_ON_A_NODE].id.clone();
        let placement = Placement { parts: vec![host.part(&demand, vec![chosen])] };
        let mut free = FreeNodes::new(&self.view.nodes);
        free.take_as_resident(id, &demand, &placement);
        self.view.nodes[position] = free.node(position).clone();
        let left = Span::from_secs(60 + self.drawn(7_200) as u64);
        let ends_at = Some(self.view.now + left);
        let started_at = Time::EPOCH + Span::from_secs(2_800 + self.drawn(7_200) as u64);
        let running = RunningJob { ends_at, ..job.placed(placement, started_at) };
        self.view.running.insert(id, running);
        id
    }

    fn job(&mut self, which: usize) -> PendingJob {
        let model = ModelDescription { name: Some(model(which)), ..ModelDescription::default() };
        let estimate = Estimate {
            iterations: Some(10_000),
            runtime: Some(Span::from_secs(3_600)),
            ..Estimate::default()
        };
        self.next += 1;
        let traits = JobTraits {
            user: format!("user-{}", self.next % 50),
            preemptible: self.next.is_multiple_of(2),
            model: Some(model),
            iterations: Some(10_000),
            estimate: Some(estimate),
            ..JobTraits::default()
        };
        PendingJob {
            id: JobId::new(self.next),
            priority: 0,
            submitted_at: self.view.now,
            eligible_at: self.view.now,
            demand: Demand {
                gpus: GpuRequest::Part(self.load.share),
                sharing: Sharing::Shared,
                gpu_memory: self.load.memory,
                ..Demand::default()
            },
            attained: AttainedTime::default(),
            traits: Arc::new(traits),
        }
    }

    fn drawn(&mut self, limit: usize) -> usize {
        (self.draws.next_u64() % limit as u64) as usize
    }
}

fn model(which: usize) -> String {
    format!("model-{which}")
}

fn node(number: usize) -> NodeView {
    let device = |position: usize| DeviceView {
        id: DeviceId(format!("GPU-{number}-{position}").into()),
        kind: DeviceKind::Fake,
        model: "H200".into(),
        free: Share::WHOLE,
        memory: Some(Bytes(141 << 30)),
        memory_free: Some(Bytes(141 << 30)),
        jobs: Vec::new(),
        availability: DeviceAvailability::Open,
        sharing: SharingTerms { mode: SharingMode::Enforced, ..SharingTerms::default() },
        foreign_memory: Bytes::ZERO,
        peers: Vec::new(),
    };
    NodeView {
        id: NodeId(uuid::Uuid::from_u128(number as u128 + 1)),
        ordinal: number as u64,
        name: format!("node{number}"),
        cpus: 96,
        cpus_free: 96,
        max_jobs: None,
        jobs: 0,
        memory: Bytes(1 << 40),
        memory_free: Bytes(1 << 40),
        owner: None,
        windows: Vec::new(),
        fetches_code: true,
        application_ports: true,
        changes_host_shares: true,
        links: LinkBandwidths::default(),
        devices: (0..DEVICES_ON_A_NODE).map(device).collect(),
    }
}
