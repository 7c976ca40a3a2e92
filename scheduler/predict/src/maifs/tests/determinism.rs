//! Check 12 of the specification, first half: the same seed trains the same weights, bit for bit.

use std::collections::BTreeMap;

use cohabit_policy::maifs::{Agents, Coordination, JointTransition, ObservationShape};

use super::instances::{transitions, variant};
use crate::maifs::{FeatureScales, Learner, LearnerSettings, UpdateLoss};

const SHAPE: ObservationShape = ObservationShape { nodes: 4, jobs: 4, levels: 3 };

/// The weights as bits, and the loss of each update.
fn trained(seed: u64, transitions: &[JointTransition]) -> (BTreeMap<String, Vec<u32>>, Vec<UpdateLoss>) {
    let mut settings = LearnerSettings::new(variant(3, Coordination::default()), seed);
    settings.target_interval = 5;
    let observations: Vec<_> = transitions.iter().map(|it| it.observation.clone()).collect();
    let mut learner = Learner::new(settings, FeatureScales::fit(&observations)).unwrap();
    let first = learner.imitate(transitions).unwrap();
    assert!(learner.imitate(transitions).unwrap() < first);
    let (mut agents, told) = learner.exploring_agents();
    transitions.iter().for_each(|it| agents.decided(it.clone()));
    drop(agents);
    let losses = told.iter().filter_map(|it| learner.observe(it).unwrap()).collect();
    let bits = |values: Vec<f32>| values.iter().map(|value| value.to_bits()).collect();
    let tensors = learner.trained().unwrap().tensors;
    let weights = tensors
        .iter()
        .map(|(name, tensor)| (name.clone(), bits(tensor.flatten_all().unwrap().to_vec1().unwrap())));
    (weights.collect(), losses)
}

#[test]
fn the_same_seed_trains_the_same_weights() {
    let transitions = transitions(41, 150, SHAPE);
    let (weights, losses) = trained(7, &transitions);
    assert_eq!(losses.len(), 10, "one for each 12 of 150 transitions, from 32 on");
    assert!(losses.iter().all(|loss| loss.q.is_finite() && loss.imitation.is_some()));
    assert_eq!(trained(7, &transitions), (weights.clone(), losses));
    assert_ne!(trained(8, &transitions).0, weights);
}

#[test]
fn a_reward_that_is_not_finite_ends_the_training_with_an_error() {
    let mut transitions = transitions(42, 48, SHAPE);
    transitions.iter_mut().for_each(|it| it.reward = f32::NAN);
    let settings = LearnerSettings::new(variant(3, Coordination::default()), 1);
    let mut learner = Learner::new(settings, FeatureScales::identity()).unwrap();
    let error = transitions.into_iter().find_map(|it| learner.observe(it).err()).unwrap();
    let text = error.to_string();
    assert_eq!(
        text,
        "the loss of the agents is NaN: use a lower learning rate, and check that rewards are finite"
    );
}
