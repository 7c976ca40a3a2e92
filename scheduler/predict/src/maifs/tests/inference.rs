//! The networks in plain Rust are those of the tensor library, and padding changes nothing.

use std::sync::Arc;

use candle_core::{DType, Tensor};
use cohabit_policy::maifs::{JointObservation, JointQ, JointValues, ObservationShape};

use super::instances::{FULL, action, close, inference, networks, observation, random, variant};
use crate::maifs::feature_scales::FeatureScales;
use crate::maifs::joint_value::ChosenActions;
use crate::maifs::networks::AgentNetworks;
use crate::maifs::observation_batch::ObservationBatch;
use crate::maifs::shape::{FACTORS, NetworkVariant};

const SHAPES: [ObservationShape; 3] = [
    ObservationShape { nodes: 1, jobs: 1, levels: 5 },
    ObservationShape { nodes: 5, jobs: 8, levels: 5 },
    ObservationShape { nodes: 9, jobs: 3, levels: 5 },
];

fn numbers(tensor: &Tensor) -> Vec<f32> {
    tensor.flatten_all().unwrap().to_vec1().unwrap()
}

/// The values of each observation of one padded batch.
fn batch_values(networks: &AgentNetworks, observations: &[Arc<JointObservation>]) -> Vec<JointValues> {
    let batch = ObservationBatch::of(observations, &FeatureScales::identity(), DType::F32).unwrap();
    let encoded = networks.encode(&batch).unwrap();
    let utilities = networks.utilities(&encoded, &batch).unwrap();
    let state = numbers(&networks.state(&encoded, &batch).unwrap());
    let factors: Vec<Tensor> = (0..=batch.jobs)
        .map(|task| networks.factors(&encoded, &batch, &vec![task; batch.count * batch.nodes]).unwrap())
        .collect();
    let of = |(at, observation): (usize, &Arc<JointObservation>)| {
        let shape = observation.shape();
        let own = utilities.narrow(0, at, 1).unwrap();
        let own = own.narrow(1, 0, shape.nodes).unwrap().narrow(2, 0, shape.actions()).unwrap();
        let factor = |node: usize, task: usize| {
            numbers(&factors[task].narrow(0, at, 1).unwrap().narrow(1, node, 1).unwrap())
        };
        let all = (0..shape.nodes).flat_map(|node| (0..shape.tasks()).map(move |task| (node, task)));
        JointValues {
            shape,
            utilities: numbers(&own),
            factors: all.flat_map(|(node, task)| factor(node, task)).collect(),
            bilinear: vec![0.0; FACTORS * FACTORS],
            kappa: 0.0,
            state: state[at],
        }
    };
    observations.iter().enumerate().map(of).collect()
}

fn observations() -> Vec<Arc<JointObservation>> {
    let mut random = random(5);
    SHAPES.iter().map(|shape| Arc::new(observation(&mut random, *shape))).collect()
}

fn check_same(variant: NetworkVariant) {
    let (networks, parameters) = networks(3, variant, DType::F32);
    let inference = inference(&parameters, variant);
    let observations = observations();
    for (should, observation) in batch_values(&networks, &observations).iter().zip(&observations) {
        let is = inference.values(observation);
        close(&is.utilities, &should.utilities, 1e-5);
        close(&is.factors, &should.factors, 1e-5);
        close(&[is.state], &[should.state], 1e-5);
    }
}

#[test]
fn plain_numbers_equal_tensors_in_a_padded_batch() {
    check_same(NetworkVariant::default());
    check_same(NetworkVariant { attention: false, ..NetworkVariant::default() });
}

#[test]
fn an_observation_alone_equals_itself_in_a_padded_batch() {
    let (networks, _) = networks(4, NetworkVariant::default(), DType::F32);
    let observations = observations();
    let together = batch_values(&networks, &observations);
    for (observation, together) in observations.into_iter().zip(&together) {
        let alone = batch_values(&networks, &[observation]).remove(0);
        close(&alone.utilities, &together.utilities, 1e-5);
        close(&alone.factors, &together.factors, 1e-5);
        close(&[alone.state], &[together.state], 1e-5);
    }
}

#[test]
fn the_value_of_a_joint_action_is_the_same_with_and_without_tensors() {
    let variant = variant(5, FULL);
    let (networks, parameters) = networks(6, variant, DType::F32);
    let inference = inference(&parameters, variant);
    let mut random = random(7);
    let observations = observations();
    let actions: Vec<_> = observations.iter().map(|it| action(&mut random, it)).collect();
    let batch = ObservationBatch::of(&observations, &FeatureScales::identity(), DType::F32).unwrap();
    let encoded = networks.encode(&batch).unwrap();
    let utilities = networks.utilities(&encoded, &batch).unwrap();
    let values: Vec<JointValues> = observations.iter().map(|it| inference.values(it)).collect();
    let qs: Vec<JointQ<'_>> =
        observations.iter().zip(&values).map(|(it, values)| JointQ::of(it, values, FULL)).collect();
    let chosen = ChosenActions {
        actions: actions.iter().collect(),
        edges: qs.iter().map(|q| q.edges().to_vec()).collect(),
        coordination: FULL,
    };
    let with = numbers(&chosen.values(&networks, &encoded, &utilities, &batch).unwrap());
    let without: Vec<f32> = qs.iter().zip(&actions).map(|(q, action)| q.value(action) as f32).collect();
    close(&with, &without, 2e-5);
}
