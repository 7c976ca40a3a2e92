//! Check 4 of the specification: exact on trees, and never worse than every agent alone.

use std::iter::successors;

use proptest::prelude::*;

use super::instances::Instance;
use crate::maifs::ObservationShape;
use crate::maifs::graph::CoordinationGraph;
use crate::maifs::max_plus::{Factors, ROUNDS, max_plus};
use crate::maifs::payoffs::Payoffs;
use crate::maifs::task_utilities::TaskUtilities;

/// The tree with this Prüfer sequence.
fn tree(sequence: &[usize]) -> Vec<(usize, usize)> {
    let nodes = sequence.len() + 2;
    let mut degree = vec![1; nodes];
    sequence.iter().for_each(|node| degree[*node] += 1);
    let mut edges = Vec::new();
    for node in sequence {
        let leaf = degree.iter().position(|degree| *degree == 1).unwrap();
        edges.push((leaf.min(*node), leaf.max(*node)));
        degree[leaf] = 0;
        degree[*node] -= 1;
    }
    let last: Vec<usize> = (0..nodes).filter(|node| degree[*node] == 1).collect();
    edges.push((last[0], last[1]));
    edges
}

/// All numbers with this many digits below `base`, as digits.
fn digits(base: usize, count: usize) -> impl Iterator<Item = Vec<usize>> {
    successors(Some(vec![0; count]), move |digits| {
        let at = digits.iter().rposition(|digit| *digit + 1 < base)?;
        let mut next = digits.clone();
        next[at] += 1;
        next[at + 1..].fill(0);
        Some(next)
    })
}

/// The best legal tasks, by looking at all.
fn brute_force(factors: &Factors<'_>) -> Vec<usize> {
    let utilities: &TaskUtilities = factors.utilities;
    let is_legal = |tasks: &Vec<usize>| {
        tasks.iter().enumerate().all(|(node, task)| utilities.utility(node, *task).is_some())
    };
    let all = digits(utilities.tasks(), utilities.nodes()).filter(is_legal);
    all.max_by(|one, two| factors.total(one).total_cmp(&factors.total(two))).unwrap()
}

#[test]
fn pruefer_sequences_give_all_labelled_trees() {
    for (nodes, trees) in [(2, 1), (3, 3), (4, 16), (5, 125)] {
        let mut all: Vec<Vec<(usize, usize)>> = digits(nodes, nodes - 2)
            .map(|sequence| {
                let mut edges = tree(&sequence);
                edges.sort_unstable();
                edges
            })
            .collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), trees, "Cayley's formula");
    }
}

#[test]
fn the_answer_on_a_tree_is_that_of_brute_force() {
    for nodes in 2..=5 {
        for (at, sequence) in digits(nodes, nodes - 2).enumerate() {
            let graph = CoordinationGraph::of_edges(&tree(&sequence));
            for jobs in 1..=4 {
                let shape = ObservationShape { nodes, jobs, levels: 1 };
                let instance = Instance::drawn((at * 100 + nodes * 10 + jobs) as u64, shape);
                let utilities = instance.utilities();
                let payoffs = Payoffs::of(&instance.values, &graph);
                let factors = Factors { utilities: &utilities, graph: &graph, payoffs: &payoffs };
                let (found, best) = (max_plus(&factors, ROUNDS), brute_force(&factors));
                assert_eq!(found, best, "{:?}", graph.edges());
            }
        }
    }
}

proptest! {
    #[test]
    fn the_answer_is_legal_and_never_worse_than_every_agent_alone(
        seed: u64, nodes in 1..9_usize, jobs in 0..9_usize, rounds in 0..9_usize, kept: u64
    ) {
        let instance = Instance::drawn(seed, ObservationShape { nodes, jobs, levels: 2 });
        let pairs = (0..nodes).flat_map(|one| (one + 1..nodes).map(move |two| (one, two)));
        let is_kept = |(at, _): &(usize, (usize, usize))| kept >> (at % 64) & 1 == 1;
        let edges: Vec<(usize, usize)> = pairs.enumerate().filter(is_kept).map(|(_, pair)| pair).collect();
        let graph = CoordinationGraph::of_edges(&edges);
        let utilities = instance.utilities();
        let payoffs = Payoffs::of(&instance.values, &graph);
        let factors = Factors { utilities: &utilities, graph: &graph, payoffs: &payoffs };
        let found = max_plus(&factors, rounds);
        prop_assert!(factors.total(&found) >= factors.total(&utilities.independent()));
        for (node, task) in found.iter().enumerate() {
            prop_assert!(utilities.utility(node, *task).is_some());
        }
    }
}
