//! Check 9 of the specification: the gradients of the whole loss are those of central differences, and every
//! parameter has one.

use std::sync::Arc;

use candle_core::{DType, Tensor};
use cohabit_policy::maifs::{Coordination, JointTransition, ObservationShape};

use super::instances::{ALONE, FULL, networks, transitions, variant};
use crate::maifs::feature_scales::FeatureScales;
use crate::maifs::imitation::TaughtActions;
use crate::maifs::losses::losses;
use crate::maifs::observation_batch::ObservationBatch;
use crate::maifs::settings::LearnerSettings;
use crate::maifs::shape::NetworkVariant;
use crate::networks::gradients_agree;

/// Transitions of two sizes, so that the batch is padded.
fn mixed_transitions() -> Vec<JointTransition> {
    let small = transitions(31, 1, ObservationShape { nodes: 2, jobs: 3, levels: 2 });
    small.into_iter().chain(transitions(32, 1, ObservationShape { nodes: 4, jobs: 2, levels: 2 })).collect()
}

fn batch(transitions: &[JointTransition]) -> ObservationBatch {
    let observations: Vec<_> = transitions.iter().map(|it| Arc::clone(&it.observation)).collect();
    ObservationBatch::of(&observations, &FeatureScales::identity(), DType::F64).unwrap()
}

/// The loss of Q and that of imitation together.
fn check_whole_loss(variant: NetworkVariant) {
    let (networks, parameters) = networks(33, variant, DType::F64);
    let transitions = mixed_transitions();
    let transitions: Vec<&JointTransition> = transitions.iter().collect();
    let batch = batch(&mixed_transitions());
    let settings = LearnerSettings::new(variant, 1);
    let loss = || -> Tensor {
        let (q, imitation) = losses(&networks, &settings, &batch, &transitions, &[0.5, -1.0]).unwrap();
        (q + (imitation.unwrap() * 0.7).unwrap()).unwrap()
    };
    gradients_agree(&parameters, loss);
    if variant.coordination == FULL {
        let gradients = loss().backward().unwrap();
        for (name, variable) in parameters.iter() {
            let gradient = gradients.get(variable).unwrap().abs().unwrap().sum_all().unwrap();
            assert!(gradient.to_scalar::<f64>().unwrap() > 0.0, "the gradient of {name} is 0");
        }
    }
}

#[test]
fn the_gradients_of_the_whole_loss_are_those_of_central_differences() {
    check_whole_loss(variant(2, FULL));
}

#[test]
fn so_are_those_of_the_dynamic_graph() {
    check_whole_loss(variant(2, Coordination::default()));
}

#[test]
fn so_are_those_without_attention_and_graph() {
    check_whole_loss(NetworkVariant { attention: false, ..variant(2, ALONE) });
}

#[test]
fn so_are_those_of_the_single_agent() {
    check_whole_loss(variant(2, Coordination::Single));
}

#[test]
fn the_cross_entropy_has_the_gradients_of_central_differences() {
    let variant = variant(2, Coordination::default());
    let (networks, mut parameters) = networks(34, variant, DType::F64);
    parameters.retain(|name| !name.starts_with("payoff.") && !name.starts_with("state."));
    let transitions = mixed_transitions();
    let transitions: Vec<&JointTransition> = transitions.iter().collect();
    let batch = batch(&mixed_transitions());
    let taught = TaughtActions::of(&batch, &transitions, variant.coordination).unwrap().unwrap();
    gradients_agree(&parameters, || {
        let encoded = networks.encode(&batch).unwrap();
        taught.cross_entropy(&networks.utilities(&encoded, &batch).unwrap(), &batch).unwrap()
    });
}
