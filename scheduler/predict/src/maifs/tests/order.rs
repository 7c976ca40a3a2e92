//! Check 7 of the specification, as far as it concerns the networks.

use cohabit_policy::maifs::{
    AgentAction, Coordination, JointObservation, JointQ, ObservationShape, PAIR_FEATURES, SERVER_FEATURES,
    TASK_FEATURES,
};

use super::instances::{close, inference, networks, observation, random};
use crate::maifs::inference::AgentInference;
use crate::maifs::shape::{FACTORS, NetworkVariant};
use crate::random::RandomExt;

const SHAPE: ObservationShape = ObservationShape { nodes: 6, jobs: 5, levels: 5 };

/// The observation with nodes and jobs in another order; places beyond the old ones are padding.
fn rearranged(old: &JointObservation, nodes: &[usize], jobs: &[usize]) -> JointObservation {
    let row = |rows: &[f32], at: usize, width: usize| rows[at * width..(at + 1) * width].to_vec();
    let shape = ObservationShape { nodes: nodes.len(), jobs: jobs.len(), ..SHAPE };
    let mut new = JointObservation::new(shape);
    for (job, from) in jobs.iter().enumerate().filter(|(_, from)| **from < SHAPE.jobs) {
        let features = row(old.tasks(), *from, TASK_FEATURES);
        new.set_task(job, features.first_chunk().unwrap());
    }
    for (node, from) in nodes.iter().enumerate().filter(|(_, from)| **from < SHAPE.nodes) {
        let features = row(old.servers(), *from, SERVER_FEATURES);
        new.set_server(node, features.first_chunk().unwrap());
        for (job, of) in jobs.iter().enumerate().filter(|(_, of)| **of < SHAPE.jobs) {
            let features = row(old.pairs(), from * SHAPE.jobs + of, PAIR_FEATURES);
            new.set_pair(node, job, features.first_chunk().unwrap());
            let is_legal =
                |level: &usize| old.is_legal(*from, AgentAction::Start { job: *of, level: *level });
            (0..SHAPE.levels).filter(is_legal).for_each(|level| new.allow(node, job, level));
        }
    }
    new
}

fn agents() -> AgentInference {
    let (_, parameters) = networks(11, NetworkVariant::default(), candle_core::DType::F32);
    inference(&parameters, NetworkVariant::default())
}

/// Compares the values and the best action of an observation with those in another order.
#[track_caller]
fn check(nodes: &[usize], jobs: &[usize]) {
    let old = observation(&mut random(12), SHAPE);
    let new = rearranged(&old, nodes, jobs);
    let agents = agents();
    let (old_values, new_values) = (agents.values(&old), agents.values(&new));
    close(&[new_values.state], &[old_values.state], 1e-5);
    let shape = new.shape();
    let coordination = Coordination::default();
    let old_best = JointQ::of(&old, &old_values, coordination).best_action();
    let new_best = JointQ::of(&new, &new_values, coordination).best_action();
    for (node, from) in nodes.iter().enumerate().filter(|(_, from)| **from < SHAPE.nodes) {
        let old_action = |action: AgentAction| match action {
            AgentAction::Nothing => action,
            AgentAction::Start { job, level } => AgentAction::Start { job: jobs[job], level },
        };
        assert_eq!(old_action(new_best[node]), old_best[*from]);
        let is_known = |task: &usize| *task == 0 || jobs[*task - 1] < SHAPE.jobs;
        for task in (0..shape.tasks()).filter(is_known) {
            let old_task = if task == 0 { 0 } else { jobs[task - 1] + 1 };
            let at = (node * shape.tasks() + task) * FACTORS;
            let old_at = (from * SHAPE.tasks() + old_task) * FACTORS;
            close(&new_values.factors[at..][..FACTORS], &old_values.factors[old_at..][..FACTORS], 1e-5);
        }
        for action in new.actions_of(node) {
            let at = node * shape.actions() + action.index(shape.levels);
            let old_at = from * SHAPE.actions() + old_action(action).index(SHAPE.levels);
            close(&[new_values.utilities[at]], &[old_values.utilities[old_at]], 1e-5);
        }
    }
}

#[test]
fn another_order_permutes_the_values_and_the_answer() {
    let mut random = random(13);
    for _ in 0..20 {
        let mut nodes: Vec<usize> = (0..SHAPE.nodes).collect();
        let mut jobs: Vec<usize> = (0..SHAPE.jobs).collect();
        random.shuffle(&mut nodes);
        random.shuffle(&mut jobs);
        check(&nodes, &jobs);
    }
}

#[test]
fn padding_among_nodes_and_jobs_changes_nothing() {
    check(&[0, 9, 1, 2, 3, 9, 4, 5, 9], &[9, 0, 1, 9, 2, 3, 4, 9, 9]);
}
