//! Random observations, transitions and networks.

use std::sync::Arc;

use candle_core::{DType, Device, Tensor};
use cohabit_policy::maifs::{
    AgentAction, Coordination, GraphKind, JointAction, JointObservation, JointTransition, ObservationShape,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::maifs::feature_scales::FeatureScales;
use crate::maifs::inference::{AgentInference, StoredTensors};
use crate::maifs::networks::AgentNetworks;
use crate::maifs::shape::NetworkVariant;
use crate::networks::Parameters;
use crate::random::RandomExt;

pub(super) const ALONE: Coordination = Coordination::Agents(GraphKind::Empty);
pub(super) const FULL: Coordination = Coordination::Agents(GraphKind::Full);

pub(super) fn random(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

fn normal<const COUNT: usize>(random: &mut ChaCha8Rng) -> [f32; COUNT] {
    std::array::from_fn(|_| random.normal() as f32)
}

/// A random observation without padding; three of four jobs are legal on a node.
pub(super) fn observation(random: &mut ChaCha8Rng, shape: ObservationShape) -> JointObservation {
    let mut observation = JointObservation::new(shape);
    (0..shape.nodes).for_each(|node| observation.set_server(node, &normal(random)));
    (0..shape.jobs).for_each(|job| observation.set_task(job, &normal(random)));
    for (node, job) in (0..shape.nodes).flat_map(|node| (0..shape.jobs).map(move |job| (node, job))) {
        observation.set_pair(node, job, &normal(random));
        if random.part() < 0.75 {
            (0..shape.levels).for_each(|level| observation.allow(node, job, level));
        }
    }
    observation
}

/// A random legal action of each agent.
pub(super) fn action(random: &mut ChaCha8Rng, observation: &JointObservation) -> JointAction {
    let mut one = |node| {
        let legal: Vec<AgentAction> = observation.actions_of(node).collect();
        legal[random.below(legal.len())]
    };
    (0..observation.shape().nodes).map(&mut one).collect()
}

/// Random transitions; every second one is taught, and every third one ends its episode.
pub(super) fn transitions(seed: u64, count: usize, shape: ObservationShape) -> Vec<JointTransition> {
    let mut random = random(seed);
    let random = &mut random;
    let mut one = |at: usize| {
        let now = observation(random, shape);
        let next = observation(random, shape);
        let taught = action(random, &now).into_iter().map(Some);
        JointTransition {
            action: action(random, &now),
            reward: random.normal() as f32,
            discount: random.part() as f32,
            next: (!at.is_multiple_of(3)).then(|| Arc::new(next)),
            teacher: if at.is_multiple_of(2) { taught.collect() } else { Vec::new() },
            observation: Arc::new(now),
        }
    };
    (0..count).map(&mut one).collect()
}

/// Networks with random parameters; those that begin as constants are drawn, too.
pub(super) fn networks(seed: u64, variant: NetworkVariant, precision: DType) -> (AgentNetworks, Parameters) {
    let mut parameters = Parameters::drawn(seed, precision);
    let networks = AgentNetworks::new(&mut parameters, variant).unwrap();
    let mut random = random(seed + 1);
    for (_, variable) in parameters.iter() {
        let noise: Vec<f64> = (0..variable.elem_count()).map(|_| random.normal() * 0.1).collect();
        let noise = Tensor::from_vec(noise, variable.shape(), &Device::Cpu).unwrap();
        let moved = (variable.as_detached_tensor() + noise.to_dtype(precision).unwrap()).unwrap();
        variable.set(&moved).unwrap();
    }
    (networks, parameters)
}

pub(super) fn inference(parameters: &Parameters, variant: NetworkVariant) -> AgentInference {
    let tensors = parameters.values().unwrap();
    AgentInference::of(&StoredTensors(&tensors), variant, &FeatureScales::identity()).unwrap()
}

pub(super) fn variant(levels: usize, coordination: Coordination) -> NetworkVariant {
    NetworkVariant { levels, coordination, ..NetworkVariant::default() }
}

#[track_caller]
pub(super) fn close(is: &[f32], should: &[f32], tolerance: f32) {
    assert_eq!(is.len(), should.len());
    for (at, (is, should)) in is.iter().zip(should).enumerate() {
        assert!((is - should).abs() < tolerance, "{is} instead of {should} at {at}");
    }
}
