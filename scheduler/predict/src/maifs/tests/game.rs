//! Check 10 of the specification: an abstract game of one step that needs coordination.

use std::sync::Arc;

use candle_core::{Device, Tensor};
use cohabit_policy::maifs::{
    AgentAction, Agents, Coordination, JointAction, JointObservation, JointQ, JointTransition,
    ObservationShape,
};

use super::instances::{ALONE, FULL, random, variant};
use crate::maifs::{FeatureScales, Learner, LearnerSettings};
use crate::random::RandomExt;

/// The reward of each joint action, by the jobs of both agents.
const REWARDS: [[f32; 2]; 2] = [[0.0, 8.0], [7.0, 6.0]];

/// Two agents and two jobs that can be told apart.
fn observation() -> Arc<JointObservation> {
    let mut observation = JointObservation::new(ObservationShape { nodes: 2, jobs: 2, levels: 1 });
    for at in 0..2 {
        let mut server = [0.0; 18];
        server[at] = 1.0;
        observation.set_server(at, &server);
        let mut task = [0.0; 16];
        task[at] = 1.0;
        observation.set_task(at, &task);
    }
    for (node, job) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        observation.allow(node, job, 0);
    }
    Arc::new(observation)
}

fn action(jobs: [usize; 2]) -> JointAction {
    jobs.map(|job| AgentAction::Start { job, level: 0 }).to_vec()
}

fn transition(jobs: [usize; 2]) -> JointTransition {
    JointTransition {
        observation: observation(),
        action: action(jobs),
        reward: REWARDS[jobs[0]][jobs[1]],
        discount: 1.0,
        next: None,
        teacher: Vec::new(),
    }
}

/// The jobs, from 1, of the joint action with the largest Q after 500 updates on uniform play. To do nothing
/// is illegal in this game, which observations do not know: all four joint actions are compared.
fn learned(coordination: Coordination, seed: u64) -> [usize; 2] {
    let settings = LearnerSettings::new(variant(1, coordination), seed);
    let mut learner = Learner::new(settings, FeatureScales::identity()).unwrap();
    without_penalty(&learner);
    let mut random = random(seed);
    while learner.updates() < 500 {
        learner.observe(transition([random.below(2), random.below(2)])).unwrap();
    }
    let observation = observation();
    let values = learner.agents().values(&[Arc::clone(&observation)]).remove(0);
    let q = JointQ::of(&observation, &values, coordination);
    let all = [[0, 0], [0, 1], [1, 0], [1, 1]];
    let best = all.into_iter().max_by(|one, two| q.value(&action(*one)).total_cmp(&q.value(&action(*two))));
    best.unwrap().map(|job| job + 1)
}

/// Makes kappa practically 0.
fn without_penalty(learner: &Learner) {
    let kappa = Tensor::new(&[-40.0_f32], &Device::Cpu).unwrap();
    learner.parameters.set(&[("payoff.kappa".to_owned(), kappa)].into()).unwrap();
}

#[test]
fn agents_with_an_edge_learn_to_coordinate() {
    for seed in 1..=1 {
        assert_eq!(learned(FULL, seed), [1, 2]);
    }
}

#[test]
fn agents_without_edges_prefer_what_an_additive_value_prefers() {
    for seed in 1..=1 {
        assert_eq!(learned(ALONE, seed), [2, 2]);
    }
}
