//! Levels, the value of joint actions, and the single agent.

use super::instances::Instance;
use crate::maifs::{
    AgentAction, Coordination, GraphKind, JointObservation, JointQ, JointValues, ObservationShape,
    SERVER_FEATURES, TASK_FEATURES,
};

const ALONE: Coordination = Coordination::Agents(GraphKind::Empty);

/// Two nodes, one job at three levels: the best level of node 1 is not legal.
fn levels() -> Instance {
    let shape = ObservationShape { nodes: 2, jobs: 1, levels: 3 };
    let mut observation = JointObservation::new(shape);
    observation.set_task(0, &[0.0; TASK_FEATURES]);
    for (node, allowed) in [&[0, 1, 2][..], &[0, 1]].iter().enumerate() {
        observation.set_server(node, &[0.0; SERVER_FEATURES]);
        allowed.iter().for_each(|level| observation.allow(node, 0, *level));
    }
    let values = JointValues {
        shape,
        utilities: vec![0.5, 1.0, 3.0, 2.0, 0.25, 1.0, 0.5, 9.0],
        factors: vec![0.0; 4],
        bilinear: vec![0.0],
        kappa: 1.0,
        state: 10.0,
    };
    Instance { observation, values }
}

fn start(level: usize) -> AgentAction {
    AgentAction::Start { job: 0, level }
}

#[test]
fn a_job_starts_at_its_best_legal_level() {
    let Instance { observation, values } = &levels();
    let best = JointQ::of(observation, values, ALONE).best_action();
    assert_eq!(best, [start(1), start(0)]);
}

#[test]
fn the_value_uses_the_level_that_was_chosen() {
    let Instance { observation, values } = &levels();
    let value = |action: [AgentAction; 2]| JointQ::of(observation, values, ALONE).value(&action);
    assert_eq!(value([start(2), start(1)]), 10.0 + f64::midpoint(2.0, 0.5));
    assert_eq!(value([start(1), AgentAction::Nothing]), 10.0 + f64::midpoint(3.0, 0.25));
    let full = JointQ::of(observation, values, Coordination::Agents(GraphKind::Full));
    assert_eq!(full.value(&[start(1), start(0)]), 10.0 + 2.0 - 1.0, "both start the same job");
}

#[test]
fn a_single_agent_starts_one_job() {
    let Instance { observation, mut values } = levels();
    let best = |values: &JointValues| JointQ::of(&observation, values, Coordination::Single).best_action();
    assert_eq!(best(&values), [start(1), AgentAction::Nothing]);
    let q = JointQ::of(&observation, &values, Coordination::Single);
    assert_eq!(q.value(&best(&values)), 13.0);
    assert_eq!(q.value(&[AgentAction::Nothing; 2]), 10.375);
    values.utilities[4] = 6.0;
    assert_eq!(best(&values), [start(1), AgentAction::Nothing], "though the mean of doing nothing is 3.25");
}

#[test]
fn the_agent_that_minds_least_starts_a_job_where_all_would_do_nothing() {
    let Instance { observation, mut values } = levels();
    (values.utilities[0], values.utilities[4]) = (6.0, 6.0);
    let best = |values: &JointValues| JointQ::of(&observation, values, ALONE).best_action();
    assert_eq!(best(&values), [start(1), AgentAction::Nothing]);
    values.utilities[0] = 9.0;
    assert_eq!(best(&values), [AgentAction::Nothing, start(0)]);
}

#[test]
fn a_forbidden_job_starts_at_no_level() {
    let Instance { mut observation, values } = levels();
    observation.forbid(0, 0);
    let best = JointQ::of(&observation, &values, ALONE).best_action();
    assert_eq!(best, [AgentAction::Nothing, start(0)]);
    observation.forbid(1, 0);
    assert!(!observation.is_anything_legal());
}

#[test]
fn a_feature_that_is_not_finite_counts_as_0() {
    let mut observation = JointObservation::new(ObservationShape { nodes: 1, jobs: 1, levels: 1 });
    let mut features = [1.0; SERVER_FEATURES];
    features[3] = f32::NAN;
    observation.set_server(0, &features);
    assert_eq!(observation.servers()[2..5], [1.0, 0.0, 1.0]);
}
