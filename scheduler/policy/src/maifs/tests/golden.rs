//! Checks 2 and 3 of the specification.

use super::instances::Instance;
use crate::maifs::graph::{CoordinationGraph, overlaps};
use crate::maifs::max_plus::{Factors, ROUNDS, max_plus};
use crate::maifs::payoffs::Payoffs;
use crate::maifs::resolve::resolve;
use crate::maifs::{AgentAction, Coordination, GraphKind, JointQ};

fn instance() -> Instance {
    Instance::of(&[&[0.0, 1.0, 0.7, 0.1], &[0.0, 1.2, 0.3, 0.2], &[0.0, 0.2, 0.5, 0.9]], 1.0)
}

#[track_caller]
fn close(is: f64, should: f64) {
    assert!((is - should).abs() < 1e-6, "{is} instead of {should}");
}

#[test]
fn agents_overlap_as_in_the_worked_example() {
    let overlaps = overlaps(&instance().utilities());
    let pairs: Vec<(usize, usize)> = overlaps.iter().map(|(pair, _)| *pair).collect();
    assert_eq!(pairs, [(0, 1), (0, 2), (1, 2)]);
    for ((_, overlap), should) in overlaps.iter().zip([0.432_565, 0.191_298, 0.176_167]) {
        close(*overlap, should);
    }
}

#[test]
fn a_conflict_is_solved_in_one_round() {
    let instance = instance();
    let utilities = instance.utilities();
    for graph in [&[(0, 1), (1, 2)][..], &[(0, 1), (0, 2), (1, 2)]] {
        let graph = CoordinationGraph::of_edges(graph);
        let payoffs = Payoffs::of(&instance.values, &graph);
        let factors = Factors { utilities: &utilities, graph: &graph, payoffs: &payoffs };
        assert_eq!(utilities.independent(), [1, 1, 3]);
        for rounds in [1, ROUNDS] {
            assert_eq!(max_plus(&factors, rounds), [2, 1, 3]);
        }
        close(factors.total(&[2, 1, 3]), 0.933_333);
        let alone = if graph.edges().len() == 2 { 0.533_333 } else { 3.1 / 3.0 - 1.0 / 3.0 };
        close(factors.total(&[1, 1, 3]), alone);
    }
}

#[test]
fn the_dynamic_graph_of_the_example_gives_the_same_answer() {
    let Instance { observation, values } = &instance();
    let q = JointQ::of(observation, values, Coordination::default());
    assert_eq!(q.edges(), [(0, 1), (0, 2), (1, 2)]);
    let best = q.best_action();
    let start = |job| AgentAction::Start { job, level: 0 };
    assert_eq!(best, [start(1), start(0), start(2)]);
    close(q.value(&best), 0.933_333);
    let alone = JointQ::of(observation, values, Coordination::Agents(GraphKind::Empty)).best_action();
    assert_eq!(alone, [start(0), start(0), start(2)]);
    let resolved = q.resolved(&alone);
    assert_eq!(resolved.action, [AgentAction::Nothing, start(0), start(2)]);
    assert_eq!(resolved.conflicts, 1);
}

#[test]
fn a_job_goes_to_the_claimant_with_the_largest_margin_and_then_to_the_first() {
    let mut tasks = [1, 1, 3];
    assert_eq!(resolve(&instance().utilities(), &mut tasks), 1);
    assert_eq!(tasks, [0, 1, 3], "the margins for job 1 are 0.3 and 0.9");
    let equal = Instance::of(&[&[0.0, 1.0], &[0.0, 1.0], &[0.0, 1.0]], 0.0);
    let mut tasks = [1, 1, 1];
    assert_eq!(resolve(&equal.utilities(), &mut tasks), 2);
    assert_eq!(tasks, [1, 0, 0]);
}
