//! Check 8 of the specification, first half: without attention and without a graph, Q is that of value
//! decomposition networks, a mean of utilities that depend on what each agent sees alone.

use candle_core::DType;
use cohabit_policy::maifs::{JointObservation, JointQ, JointValues, ObservationShape};

use super::instances::{ALONE, action, inference, networks, observation, random};
use crate::maifs::shape::NetworkVariant;

const SHAPE: ObservationShape = ObservationShape { nodes: 4, jobs: 3, levels: 5 };

fn values(observation: &JointObservation, attention: bool) -> JointValues {
    let variant = NetworkVariant { attention, coordination: ALONE, ..NetworkVariant::default() };
    let (_, parameters) = networks(21, variant, DType::F32);
    inference(&parameters, variant).values(observation)
}

#[test]
fn q_is_the_mean_of_the_utilities_and_the_value_of_the_state() {
    let mut random = random(22);
    let observation = observation(&mut random, SHAPE);
    let values = values(&observation, false);
    let q = JointQ::of(&observation, &values, ALONE);
    assert_eq!(q.edges(), []);
    for _ in 0..50 {
        let action = action(&mut random, &observation);
        let of = |(node, own): (usize, &cohabit_policy::maifs::AgentAction)| {
            f64::from(values.utilities[node * SHAPE.actions() + own.index(SHAPE.levels)])
        };
        let mean = action.iter().enumerate().map(of).sum::<f64>() / 4.0;
        assert!((q.value(&action) - mean - f64::from(values.state)).abs() < 1e-9);
    }
}

#[test]
fn without_attention_an_agent_sees_nothing_of_the_others() {
    let old = observation(&mut random(23), SHAPE);
    let mut new = old.clone();
    new.set_server(0, &[0.5; 18]);
    let unchanged = |attention: bool| {
        let (old, new) = (values(&old, attention), values(&new, attention));
        assert_ne!(old.utilities[..SHAPE.actions()], new.utilities[..SHAPE.actions()]);
        old.utilities[SHAPE.actions()..] == new.utilities[SHAPE.actions()..]
    };
    assert!(unchanged(false));
    assert!(!unchanged(true), "attention tells the other agents");
}
