//! Random instances: a small cluster with a slow network, and parallel training jobs whose iterations are
//! estimated with an error.
//!
//! Everything follows from the seed.

use cohabit_types::{Bandwidth, JobId, LinkBandwidths, ModelDescription, PipelineStage, Placement, Time};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::super::queue_state::compute_virtual_work;
use crate::a_srpt::{ASrpt, ASrptOptions, VirtualAlpha};
use crate::mapping::MapperOptions;
use crate::queue::virtual_srpt_machine::VirtualSrptMachine;
use crate::tests::cluster::{Ran, TestCluster, TestJob};
use crate::tests::kit::{anywhere, node};
use crate::{LinkDefaults, MappedPlacer, NodeView, Placer, Policy, Profile, View};

/// Numbers drawn from a seed.
pub(crate) struct Draws(ChaCha8Rng);

impl Draws {
    pub(crate) fn new(seed: u64) -> Draws {
        Draws(ChaCha8Rng::seed_from_u64(seed))
    }

    /// From 0 to 1, excluding 1.
    pub(crate) fn part(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.part() * limit as f64) as usize
    }

    /// Evenly over the orders of magnitude.
    pub(crate) fn scaled(&mut self, least: f64, most: f64) -> f64 {
        least * (most / least).powf(self.part())
    }
}

/// Nodes and jobs.
pub(crate) struct Instance {
    pub(crate) nodes: Vec<NodeView>,
    pub(crate) jobs: Vec<TestJob>,
}

const NETWORK: Bandwidth = Bandwidth(10_000_000_000);
const INTERCONNECT: Bandwidth = Bandwidth(400_000_000_000);

/// Nodes with this many devices each, on a network of 10 Gb/s.
pub(crate) fn nodes(count: u8, devices: usize) -> Vec<NodeView> {
    let links = LinkBandwidths { network: Some(NETWORK), interconnect: Some(INTERCONNECT) };
    (1..=count).map(|number| NodeView { links, ..node(number, &vec![1_000; devices]) }).collect()
}

/// A replicated model that exchanges these bytes of gradients.
pub(crate) fn replicated(replicas: u32, compute_seconds: f64, gradient_bytes: f64) -> Vec<PipelineStage> {
    let stage = PipelineStage {
        replicas,
        compute_seconds,
        compute_seconds_on: Default::default(),
        activation_bytes: 0.0,
        gradient_bytes,
    };
    vec![stage]
}

/// A model cut into pipeline stages.
fn pipelined(replicas: &[u32], compute_seconds: f64, bytes: f64) -> Vec<PipelineStage> {
    let stage = |replicas: &u32| PipelineStage {
        activation_bytes: bytes,
        ..replicated(*replicas, compute_seconds, bytes / 4.0).remove(0)
    };
    replicas.iter().map(stage).collect()
}

fn stages(devices: u32, draws: &mut Draws) -> Vec<PipelineStage> {
    // Few different models, as in a real lab, so that mappings can be cached.
    let bytes = [1e6, 5e7, 4e8][draws.below(3)];
    match (devices, draws.below(3)) {
        (2 | 4 | 6, 1) => pipelined(&vec![2; devices as usize / 2], 0.05, bytes),
        (3.., 2) => pipelined(&[devices - 2, 1, 1], 0.05, bytes),
        _ => replicated(devices, 0.1, bytes),
    }
}

/// The parameters of an instance.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) nodes: u8,
    pub(crate) devices: usize,
    pub(crate) jobs: u64,
    /// The error of estimates: a factor up to e to the power of this, either way.
    pub(crate) error: f64,
}

impl Instance {
    pub(crate) fn draw(shape: Shape, seed: u64) -> Instance {
        let draws = &mut Draws::new(seed);
        let sizes = [1, 1, 1, 2, 2, 3, 4, 6, 8];
        let most = u32::from(shape.nodes) * shape.devices as u32;
        let mut at = 0.0;
        let jobs = (1..=shape.jobs).map(|number| {
            at += draws.scaled(0.01, 30.0);
            let devices = sizes[draws.below(sizes.len())].min(most);
            let iterations = draws.scaled(1.0, 2_000.0) as u64;
            let error = (shape.error * (2.0 * draws.part() - 1.0)).exp();
            let expected = (iterations as f64 * error).round().max(1.0) as u64;
            let model = ModelDescription { stages: stages(devices, draws), ..ModelDescription::default() };
            TestJob::new(number, at, anywhere(devices), iterations).training(model).expected(expected)
        });
        Instance { jobs: jobs.collect(), nodes: nodes(shape.nodes, shape.devices) }
    }

    /// All devices.
    pub(crate) fn devices(&self) -> u64 {
        self.nodes.iter().map(|node| node.devices.len() as u64).sum()
    }

    /// The profile of each job, with its iteration times.
    pub(crate) fn profiles(&self, place: &mut MappedPlacer) -> Vec<Profile> {
        place.prepare(&View { nodes: self.nodes.clone(), ..View::default() });
        let profile = |job: &TestJob| place.profile(&job.pending.demand, &job.pending.traits);
        self.jobs.iter().map(profile).collect()
    }

    /// The same instance with exact estimates.
    pub(crate) fn foreseen(&self) -> Instance {
        let jobs = self.jobs.iter().map(|job| job.clone().expected(job.iterations)).collect();
        Instance { jobs, nodes: self.nodes.clone() }
    }

    /// Completion times on the virtual machine, by job.
    pub(crate) fn turns(&self, profiles: &[Profile], alpha: VirtualAlpha) -> Vec<Time> {
        let mut machine = VirtualSrptMachine::default();
        machine.set_speed(self.devices() * 1_000);
        let mut turns = vec![Time::EPOCH; self.jobs.len()];
        let mut note = |job: JobId, at| turns[job.number as usize - 1] = at;
        for (job, profile) in self.jobs.iter().zip(profiles) {
            machine.advance(job.pending.eligible_at, &mut note);
            machine.release(job.pending.eligible_at, job.pending.id, compute_virtual_work(profile, alpha));
        }
        machine.advance(Time::NEVER, &mut note);
        turns
    }

    /// What happens to the jobs, in the order of their numbers.
    pub(crate) fn run(&self, options: &ASrptOptions, place: &MappedPlacer) -> Vec<Ran> {
        self.run_policy(&mut ASrpt::new(options, place.clone()), place)
    }

    /// The same with any policy.
    pub(crate) fn run_policy(&self, policy: &mut dyn Policy, place: &MappedPlacer) -> Vec<Ran> {
        let truth = Box::new(place.clone());
        let mut cluster = TestCluster::new(self.nodes.clone(), self.jobs.clone(), truth);
        let mut ran = cluster.run(policy);
        ran.sort_by_key(|it| it.job);
        assert_eq!(ran.len(), self.jobs.len(), "every job ends");
        ran
    }
}

/// A mapper with an empty cache.
pub(crate) fn place() -> MappedPlacer {
    MappedPlacer::new(MapperOptions::default(), LinkDefaults::default())
}

/// The sum of the completion times, in seconds.
pub(crate) fn completion(ran: &[Ran]) -> f64 {
    ran.iter().map(|it| it.ended_at.as_secs_f64()).sum()
}

pub(crate) fn sum(times: &[Time]) -> f64 {
    times.iter().map(|at| at.as_secs_f64()).sum()
}

/// The number of nodes of a placement.
pub(crate) fn spread(placement: &Placement) -> usize {
    placement.parts.len()
}
