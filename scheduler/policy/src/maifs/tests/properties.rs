//! Check 7 of the specification, as far as it concerns the joint action: order and padding do not matter.

use proptest::prelude::*;

use super::instances::{Instance, order};
use crate::maifs::{AgentAction, Coordination, GraphKind, JointAction, JointQ, ObservationShape};

fn any_coordination() -> impl Strategy<Value = Coordination> {
    let kind = prop::sample::select(vec![GraphKind::Dynamic, GraphKind::Empty, GraphKind::Full]);
    prop_oneof![kind.prop_map(Coordination::Agents), Just(Coordination::Single)]
}

fn any_shape() -> impl Strategy<Value = ObservationShape> {
    (1..8_usize, 1..8_usize, 1..4_usize).prop_map(|(nodes, jobs, levels)| ObservationShape {
        nodes,
        jobs,
        levels,
    })
}

/// What would be chosen, with its value and what is left of it without conflicts.
fn chosen(instance: &Instance, coordination: Coordination) -> (JointAction, f64, JointAction, usize) {
    let q = JointQ::of(&instance.observation, &instance.values, coordination);
    let best = q.best_action();
    let resolved = q.resolved(&best);
    (best.clone(), q.value(&best), resolved.action, resolved.conflicts)
}

/// The action in the old order of the nodes and jobs.
fn back(action: &[AgentAction], nodes: &[usize], jobs: &[usize]) -> JointAction {
    let mut old = vec![AgentAction::Nothing; nodes.len()];
    for (own, node) in action.iter().zip(nodes) {
        old[*node] = match own {
            AgentAction::Nothing => AgentAction::Nothing,
            AgentAction::Start { job, level } => AgentAction::Start { job: jobs[*job], level: *level },
        };
    }
    old
}

proptest! {
    #[test]
    fn another_order_of_nodes_and_jobs_permutes_the_answer(
        seed: u64, shape in any_shape(), coordination in any_coordination()
    ) {
        let instance = Instance::drawn(seed, shape);
        let (nodes, jobs) = (order(seed, shape.nodes), order(seed ^ 1, shape.jobs));
        let (best, value, resolved, conflicts) = chosen(&instance, coordination);
        let (other, other_value, other_resolved, other_conflicts) =
            chosen(&instance.rearranged(&nodes, &jobs), coordination);
        prop_assert_eq!(back(&other, &nodes, &jobs), best);
        prop_assert_eq!(back(&other_resolved, &nodes, &jobs), resolved);
        prop_assert_eq!(other_conflicts, conflicts);
        prop_assert!((other_value - value).abs() < 1e-9);
    }

    #[test]
    fn padding_changes_nothing(
        seed: u64, shape in any_shape(), coordination in any_coordination(), more in (0..3_usize, 0..3_usize)
    ) {
        let instance = Instance::drawn(seed, shape);
        let nodes: Vec<usize> = (0..shape.nodes + more.0).collect();
        let jobs: Vec<usize> = (0..shape.jobs + more.1).collect();
        let (best, value, _, conflicts) = chosen(&instance, coordination);
        let (mut other, other_value, _, other_conflicts) =
            chosen(&instance.rearranged(&nodes, &jobs), coordination);
        prop_assert!(other.split_off(shape.nodes).iter().all(|it| *it == AgentAction::Nothing));
        prop_assert_eq!(other, best);
        prop_assert!((other_value - value).abs() < 1e-12);
        prop_assert_eq!(other_conflicts, conflicts);
    }

    #[test]
    fn a_resolved_action_starts_no_job_twice(
        seed: u64, shape in any_shape(), coordination in any_coordination()
    ) {
        let instance = Instance::drawn(seed, shape);
        let (best, _, resolved, conflicts) = chosen(&instance, coordination);
        let mut jobs: Vec<usize> = resolved.iter().map(|it| it.task()).filter(|task| *task > 0).collect();
        let claims = best.iter().filter(|it| **it != AgentAction::Nothing).count();
        prop_assert_eq!(claims - jobs.len(), conflicts);
        jobs.sort_unstable();
        jobs.dedup();
        prop_assert_eq!(claims - jobs.len(), conflicts);
    }
}
