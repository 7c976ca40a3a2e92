//! Exploring agents: how often they act at random, and that they act legally.

use cohabit_policy::maifs::{AgentAction, Agents, Coordination, JointObservation, ObservationShape};

use super::instances::{observation, random, variant};
use crate::maifs::{FeatureScales, Learner, LearnerSettings};

const SHAPE: ObservationShape = ObservationShape { nodes: 6, jobs: 4, levels: 3 };
const ROUNDS: u32 = 2_000;

/// How many of the actions of all rounds differ from those that were chosen.
fn changed(coordination: Coordination, progress: f64, chosen: AgentAction) -> f64 {
    let settings = LearnerSettings::new(variant(3, coordination), 1);
    let mut learner = Learner::new(settings, FeatureScales::identity()).unwrap();
    learner.set_progress(progress);
    let (mut agents, _) = learner.exploring_agents();
    let mut observation = observation(&mut random(51), SHAPE);
    (0..6).for_each(|node| (0..3).for_each(|level| observation.allow(node, 0, level)));
    let mut count = 0;
    for _ in 0..ROUNDS {
        let mut action = vec![chosen; 6];
        agents.explore(&observation, &mut action);
        check_legal(&observation, &action);
        count += action.iter().filter(|it| **it != chosen).count();
    }
    count as f64 / f64::from(ROUNDS * 6)
}

fn check_legal(observation: &JointObservation, action: &[AgentAction]) {
    assert!(action.iter().enumerate().all(|(node, own)| observation.is_legal(node, *own)));
}

#[test]
fn agents_explore_less_and_less() {
    let nothing = AgentAction::Nothing;
    let first = changed(Coordination::default(), 0.0, nothing);
    // With 0.3 a task is drawn, and about one of four is to do nothing.
    assert!((0.19..0.27).contains(&first), "{first}");
    let last = changed(Coordination::default(), 1.0, nothing);
    assert!((0.005..0.02).contains(&last), "{last}");
}

#[test]
fn the_level_is_explored_as_well() {
    let start = AgentAction::Start { job: 0, level: 1 };
    let part = changed(Coordination::default(), 0.0, start);
    // 0.3 by the task and 0.7 * 0.3 by the level, of which a third draws the same.
    assert!((0.36..0.46).contains(&part), "{part}");
}

#[test]
fn the_single_agent_starts_at_most_one_job() {
    let part = changed(Coordination::Single, 0.0, AgentAction::Nothing) * 6.0;
    assert!((0.25..0.33).contains(&part), "{part}");
}
