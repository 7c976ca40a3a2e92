//! The single agent learns from a teacher like the others.

use std::sync::Arc;

use cohabit_policy::maifs::{
    AgentAction, Agents, Coordination, JointObservation, JointQ, JointTransition, ObservationShape,
};

use super::instances::{ALONE, observation, random, variant};
use crate::maifs::{FeatureScales, Learner, LearnerSettings};

const SHAPE: ObservationShape = ObservationShape { nodes: 4, jobs: 3, levels: 2 };

/// The teacher starts the job with the largest first feature on the node with the largest, at level 1.
fn taught(observation: JointObservation) -> JointTransition {
    let largest = |rows: &[f32], width: usize| {
        let firsts = rows.iter().step_by(width).enumerate();
        firsts.max_by(|one, two| one.1.total_cmp(two.1)).map(|(at, _)| at).unwrap()
    };
    let start = AgentAction::Start { job: largest(observation.tasks(), 16), level: 1 };
    let node = largest(observation.servers(), 18);
    let mut action = vec![AgentAction::Nothing; SHAPE.nodes];
    if observation.is_legal(node, start) {
        action[node] = start;
    }
    JointTransition {
        observation: Arc::new(observation),
        teacher: action.iter().map(|own| Some(*own)).collect(),
        action,
        reward: 0.0,
        discount: 1.0,
        next: None,
    }
}

/// The part of new observations in which the agents do what the teacher would, after imitation.
fn agreement(coordination: Coordination) -> f64 {
    let mut random = random(61);
    let mut lessons = |count: usize| -> Vec<JointTransition> {
        (0..count).map(|_| taught(observation(&mut random, SHAPE))).collect()
    };
    let (lessons, exam) = (lessons(1_500), lessons(200));
    let mut settings = LearnerSettings::new(variant(2, coordination), 1);
    settings.learning_rate = 2e-3;
    let mut learner = Learner::new(settings, FeatureScales::identity()).unwrap();
    for _ in 0..6 {
        learner.imitate(&lessons).unwrap();
    }
    let mut agents = learner.agents();
    let agrees = |it: &&JointTransition| {
        let values = agents.values(&[Arc::clone(&it.observation)]).remove(0);
        JointQ::of(&it.observation, &values, coordination).best_action() == it.action
    };
    exam.iter().filter(agrees).count() as f64 / exam.len() as f64
}

#[test]
fn a_teacher_is_imitated_by_agents_and_by_a_single_agent() {
    for coordination in [ALONE, Coordination::Single] {
        let part = agreement(coordination);
        assert!(part > 0.6, "{coordination:?}: {part}");
    }
}
