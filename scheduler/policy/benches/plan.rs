//! How long a policy takes for a plan, by devices and by jobs that wait: run by hand, prints a table. An
//! argument leaves out the rows without this text.
//!
//! In the steady state of an overloaded cluster: between two plans one job ends and one arrives. In the worst
//! case all that wait hold out for a better place, and one more or one fewer device is free each time. Mixed
//! demands are of many classes: shares and whole GPUs with all kinds of cores and memory, of fifty users.
//! Measured is learning of the changes and planning, as the head would do it, and nothing of the head.
#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "a bench measures real time")]
#![expect(clippy::print_stdout, reason = "a bench is read on a terminal")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on ends here")]

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cohabit_policy::{
    Action, AttainedTime, DeviceAvailability, DeviceView, FreeNodes, JobTraits, NodeView, PendingJob, Plan,
    Policy, SharesChange, SharingTerms, View, ViewChange, parse_policy,
};
use cohabit_types::{
    Bandwidth, Bytes, Demand, DeviceId, DeviceKind, Estimate, GpuRequest, JobId, LaunchMode, LinkBandwidths,
    ModelDescription, NodeId, PipelineStage, Placement, ReasonCode, Share, Span, Spread,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

const DEVICES_ON_A_NODE: usize = 8;

/// How many amounts of cores, of host memory and of GPU memory jobs ask for: few make hundreds of classes,
/// many nearly as many as there are jobs.
const FEW: usize = 4;
const MANY: usize = 24;

/// Devices, jobs that wait, plans.
const ROWS: [(usize, u64, usize, Mix); 18] = [
    (64, 1_000, 2_000, Mix::Overload),
    (512, 1_000, 2_000, Mix::Overload),
    (512, 10_000, 2_000, Mix::Overload),
    (512, 100_000, 2_000, Mix::Overload),
    (512, 10_000, 2_000, Mix::InTurns),
    (512, 100_000, 2_000, Mix::InTurns),
    (2_048, 10_000, 2_000, Mix::Overload),
    (2_048, 100_000, 2_000, Mix::Overload),
    (16_384, 10_000, 1_000, Mix::Overload),
    (16_384, 100_000, 500, Mix::Overload),
    (512, 10_000, 2_000, Mix::HoldOut),
    (16_384, 100_000, 500, Mix::HoldOut),
    (512, 10_000, 2_000, Mix::Mixed("first-fit-sharing", FEW)),
    (512, 10_000, 2_000, Mix::Mixed("drf", FEW)),
    (512, 10_000, 2_000, Mix::Mixed("tetris", FEW)),
    (512, 10_000, 200, Mix::Mixed("first-fit-sharing", MANY)),
    (512, 10_000, 200, Mix::Mixed("drf", MANY)),
    (512, 10_000, 200, Mix::Mixed("tetris", MANY)),
];

/// What waits for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mix {
    /// Jobs of all sizes, for devices.
    Overload,
    /// The same, of a hundred users who take turns.
    InTurns,
    /// Jobs of few classes, for a whole node; each node has a free device.
    HoldOut,
    /// Jobs for all resources of a node, in so many amounts of each, under this policy.
    Mixed(&'static str, usize),
}

fn main() {
    println!(
        "| what | devices | jobs waiting | in the queue | first plan, ms | p50, us | p99, us | most, us |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let wanted = std::env::args().skip(1).find(|text| !text.starts_with('-')).unwrap_or_default();
    for (devices, jobs, plans, mix) in ROWS {
        let what = mix.to_string();
        if !what.contains(&wanted) {
            continue;
        }
        let mut bench = Bench::new(devices, jobs, mix);
        let first = bench.plan();
        for _ in 0..plans / 10 {
            bench.step();
        }
        let mut times: Vec<Duration> = (0..plans).map(|_| bench.step()).collect();
        times.sort_unstable();
        let micros = |part: f64| times[((times.len() - 1) as f64 * part) as usize].as_micros();
        println!(
            "| {what} | {devices} | {} | {} | {} | {} | {} | {} |",
            bench.view.pending.len(),
            bench.in_queue(),
            first.as_millis(),
            micros(0.5),
            micros(0.99),
            micros(1.0)
        );
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mix::Overload => f.write_str("overload"),
            Mix::InTurns => f.write_str("overload, a hundred users in turns"),
            Mix::HoldOut => f.write_str("all hold out"),
            Mix::Mixed(policy, FEW) => write!(f, "{policy}, hundreds of classes"),
            Mix::Mixed(policy, _) => write!(f, "{policy}, thousands of classes"),
        }
    }
}

/// An overloaded cluster.
struct Bench {
    draws: ChaCha8Rng,
    policy: Box<dyn Policy>,
    view: View,
    changes: Vec<ViewChange>,
    models: Vec<ModelDescription>,
    next: u64,
    /// Between two arrivals, so that the virtual machine keeps up with them.
    pause: Span,
    mix: Mix,
}

impl Bench {
    fn new(devices: usize, jobs: u64, mix: Mix) -> Bench {
        let nodes: Vec<NodeView> = (0..devices / DEVICES_ON_A_NODE).map(|number| node(number, mix)).collect();
        let name = match mix {
            Mix::Overload | Mix::InTurns => "a-srpt",
            // The virtual machine would keep most of them from the queue.
            Mix::HoldOut => "a-srpt-turn:virtual-machine=off",
            Mix::Mixed(policy, _) => policy,
        };
        let mut bench = Bench {
            draws: ChaCha8Rng::seed_from_u64(7),
            policy: parse_policy(name).unwrap(),
            changes: nodes.into_iter().map(ViewChange::Node).collect(),
            view: View::default(),
            models: models(),
            next: 1,
            pause: Span::from_secs_f64(4_900.0 / devices as f64),
            mix,
        };
        if mix == Mix::InTurns {
            let table = SharesChange::Table(Arc::default());
            bench.changes.insert(0, ViewChange::Shares(table));
        }
        for _ in 0..jobs {
            bench.arrive();
            // Arrivals come faster than they are worked off, so that many still wait for their turn.
            bench.view.now += Span::from_micros(bench.pause.as_micros() / 5);
        }
        bench.view.apply(&bench.changes);
        bench
    }

    /// One job ends, one arrives, and there is a plan; how long the plan took.
    fn step(&mut self) -> Duration {
        match self.mix {
            Mix::Overload | Mix::InTurns | Mix::Mixed(..) => self.end_one(),
            Mix::HoldOut => self.flip_one(),
        }
        self.view.now += self.pause;
        self.arrive();
        self.view.apply(&self.changes);
        self.plan()
    }

    fn end_one(&mut self) {
        let ended = self.drawn(self.view.running.len());
        if let Some(running) = self.view.running.values().nth(ended).cloned() {
            self.book(&running.placement, |free| free.give_back(&running.demand, &running.placement));
            self.changes.push(ViewChange::Gone(running.id));
        }
    }

    /// The free device of some node is taken, or comes free again.
    fn flip_one(&mut self) {
        let position = self.drawn(self.view.nodes.len());
        let mut node = self.view.nodes[position].clone();
        node.devices[0].free = Share::WHOLE.saturating_sub(node.devices[0].free);
        self.changes.push(ViewChange::Node(node));
    }

    fn plan(&mut self) -> Duration {
        let before = Instant::now();
        self.policy.learn(&self.view, &self.changes);
        let Plan { actions, .. } = self.policy.plan(&self.view);
        let took = before.elapsed();
        self.changes.clear();
        actions.into_iter().for_each(|action| self.start(action));
        took
    }

    fn start(&mut self, action: Action) {
        let Action::Place { job, placement, .. } = action else { panic!("these policies stop no job") };
        let job = self.view.pending[&job].clone();
        self.book(&placement, |free| free.take(&job.demand, &placement));
        let change = ViewChange::Running(job.placed(placement, self.view.now));
        self.view.apply(std::slice::from_ref(&change));
        self.changes.push(change);
    }

    fn book(&mut self, placement: &Placement, change: impl FnOnce(&mut FreeNodes<'_>)) {
        let mut free = FreeNodes::new(&self.view.nodes);
        change(&mut free);
        let touched = |node: &&NodeView| placement.parts.iter().any(|part| part.node == node.id);
        let nodes: Vec<ViewChange> = free.nodes().filter(touched).cloned().map(ViewChange::Node).collect();
        self.view.apply(&nodes);
        self.changes.extend(nodes);
    }

    fn arrive(&mut self) {
        let devices = match self.mix {
            Mix::Overload | Mix::InTurns => [1, 1, 1, 1, 1, 1, 2, 2, 4, 4, 8, 8, 8, 16, 32][self.drawn(15)],
            Mix::HoldOut => 8,
            Mix::Mixed(..) => [0, 1, 1, 1, 2, 4, 8][self.drawn(7)],
        };
        let fitting: Vec<&ModelDescription> =
            self.models.iter().filter(|it| replicas(it) == devices).collect();
        let model = match (fitting.len(), self.mix) {
            (0, _) | (_, Mix::Mixed(..)) => None,
            (count, Mix::Overload | Mix::InTurns) => {
                Some(fitting[(self.next % count as u64) as usize].clone())
            }
            (count, Mix::HoldOut) => Some(fitting[count - 1 - (self.next % 2) as usize].clone()),
        };
        let iterations = match self.mix {
            Mix::Overload | Mix::InTurns | Mix::Mixed(..) => 10_f64.powf(2.0 + 2.5 * self.part()) as u64,
            Mix::HoldOut => 1_000_000_000 + self.next,
        };
        let traits = JobTraits {
            user: format!("user{}", self.next % if self.mix == Mix::InTurns { 100 } else { 50 }),
            model,
            iterations: Some(iterations),
            estimate: Some(Estimate {
                iterations: Some(iterations),
                runtime: Some(Span::from_millis(iterations * 150)),
                ..Estimate::default()
            }),
            launch: LaunchMode::PerGpu,
            ..JobTraits::default()
        };
        let job = PendingJob {
            id: JobId::new(self.next),
            priority: 0,
            submitted_at: self.view.now,
            eligible_at: self.view.now,
            demand: self.demand(devices),
            attained: AttainedTime::default(),
            traits: Arc::new(traits),
        };
        self.next += 1;
        self.changes.push(ViewChange::Pending(job));
    }

    fn demand(&mut self, devices: u32) -> Demand {
        let whole = Demand { gpus: GpuRequest::Whole(devices), ..Demand::default() };
        let Mix::Mixed(_, amounts) = self.mix else { return Demand { spread: Spread::Free, ..whole } };
        let mut amount = |most: usize| ((1 + self.drawn(amounts)) * most / amounts) as u64;
        let (cpus, memory) = (amount(24) as u32, Bytes(amount(192) << 30));
        let (gpu_memory, share) = (Some(Bytes(amount(48) << 30)), Share(amount(960) as u32));
        match devices {
            0 => Demand { gpus: GpuRequest::Part(share), gpu_memory, cpus, memory, ..whole },
            _ => Demand { cpus, memory, ..whole },
        }
    }

    /// Pending jobs whose virtual turn has come.
    fn in_queue(&mut self) -> usize {
        // A policy explains only a view all changes of which it was told.
        self.policy.learn(&self.view, &self.changes);
        self.changes.clear();
        let reasons = self.policy.explain_pending(&self.view);
        reasons.iter().filter(|it| it.code != ReasonCode::WaitingForVirtualTurn).count()
    }

    fn part(&mut self) -> f64 {
        (self.draws.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn drawn(&mut self, limit: usize) -> usize {
        (self.part() * limit as f64) as usize
    }
}

fn node(number: usize, mix: Mix) -> NodeView {
    let device = |position: usize| DeviceView {
        id: DeviceId(format!("GPU-{number}-{position}").into()),
        kind: DeviceKind::Fake,
        model: "H200".into(),
        free: if matches!(mix, Mix::Overload | Mix::InTurns) || position == 0 {
            Share::WHOLE
        } else {
            Share(0)
        },
        memory: Some(Bytes(141 << 30)),
        memory_free: Some(Bytes(141 << 30)),
        jobs: Vec::new(),
        availability: DeviceAvailability::Open,
        sharing: SharingTerms::default(),
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
        links: LinkBandwidths { network: Some(Bandwidth(25_000_000_000)), interconnect: None },
        devices: (0..DEVICES_ON_A_NODE).map(device).collect(),
    }
}

/// Replicated and pipelined models of every size, with little and with much to exchange.
fn models() -> Vec<ModelDescription> {
    let stage = |replicas, bytes: f64| PipelineStage {
        replicas,
        compute_seconds: 0.1,
        compute_seconds_on: Default::default(),
        activation_bytes: bytes / 2.0,
        gradient_bytes: bytes,
    };
    let mut models = Vec::new();
    for devices in [2, 4, 8, 16, 32] {
        for bytes in [4e6, 1e8, 7e8] {
            let halves = vec![stage(devices / 2, bytes), stage(devices / 2, bytes)];
            for stages in [vec![stage(devices, bytes)], halves] {
                models.push(ModelDescription { stages, ..ModelDescription::default() });
            }
        }
    }
    models
}

fn replicas(model: &ModelDescription) -> u32 {
    model.stages.iter().map(|stage| stage.replicas).sum()
}
