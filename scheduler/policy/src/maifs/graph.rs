//! The dynamic coordination graph: which agents are likely to want the same job (section 6).

use super::coordination::{Coordination, GraphKind};
use super::observation::JointObservation;
use super::task_utilities::TaskUtilities;

/// The temperature of the softmax over an agent's tasks.
const TEMPERATURE: f64 = 0.5;
/// Agents with a smaller overlap are not coordinated.
const LEAST_OVERLAP: f64 = 0.05;
/// The most edges of an agent.
const MOST_EDGES: usize = 3;

/// The pairs of agents that are coordinated, each with the smaller index first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CoordinationGraph {
    edges: Vec<(usize, usize)>,
}

impl CoordinationGraph {
    pub(crate) fn of(coordination: Coordination, utilities: &TaskUtilities) -> CoordinationGraph {
        match coordination {
            Coordination::Agents(kind) => CoordinationGraph::of_kind(kind, utilities),
            Coordination::Single => CoordinationGraph { edges: Vec::new() },
        }
    }

    fn of_kind(kind: GraphKind, utilities: &TaskUtilities) -> CoordinationGraph {
        match kind {
            GraphKind::Dynamic => strongest(overlaps(utilities), utilities.nodes()),
            GraphKind::Empty => CoordinationGraph { edges: Vec::new() },
            GraphKind::Full => CoordinationGraph { edges: pairs(utilities).collect() },
        }
    }

    #[cfg(test)]
    pub(crate) fn of_edges(edges: &[(usize, usize)]) -> CoordinationGraph {
        CoordinationGraph { edges: edges.to_vec() }
    }

    pub(crate) fn edges(&self) -> &[(usize, usize)] {
        &self.edges
    }
}

/// The pairs of agents that are coordinated if their utilities f_i(a) are these, `[V, 1 + K * L]`; each with
/// the smaller index first. For learners, which need no more of [`super::JointQ`].
#[must_use]
pub fn coordinated_pairs(
    observation: &JointObservation,
    utilities: &[f32],
    coordination: Coordination,
) -> Vec<(usize, usize)> {
    CoordinationGraph::of(coordination, &TaskUtilities::of(observation, utilities)).edges
}

/// All pairs of agents, without padding.
fn pairs(utilities: &TaskUtilities) -> impl Iterator<Item = (usize, usize)> {
    let pairs =
        (0..utilities.nodes()).flat_map(|one| (one + 1..utilities.nodes()).map(move |two| (one, two)));
    pairs.filter(|(one, two)| utilities.has_node(*one) && utilities.has_node(*two))
}

/// The probability that each pair of agents wants the same job, if both drew a task by their softmax.
pub(crate) fn overlaps(utilities: &TaskUtilities) -> Vec<((usize, usize), f64)> {
    let wants: Vec<Vec<f64>> = (0..utilities.nodes()).map(|node| softmax(utilities, node)).collect();
    let overlap = |(one, two): (usize, usize)| -> f64 {
        wants[one].iter().zip(&wants[two]).skip(1).map(|(one, two)| one * two).sum()
    };
    pairs(utilities).map(|pair| (pair, overlap(pair))).collect()
}

/// The probability of each task, `[1 + K]`; 0 where illegal.
fn softmax(utilities: &TaskUtilities, node: usize) -> Vec<f64> {
    let most = utilities.legal(node).map(|(_, utility)| utility).fold(f64::NEG_INFINITY, f64::max);
    let mut odds = vec![0.0; utilities.tasks()];
    for (task, utility) in utilities.legal(node) {
        odds[task] = ((utility - most) / TEMPERATURE).exp();
    }
    let sum: f64 = odds.iter().sum();
    odds.iter().map(|odds| odds / sum).collect()
}

/// Takes the pairs by falling overlap, ties by index, and keeps a pair if both agents have fewer than three
/// edges so far.
///
/// The specification asks for at most the three strongest edges of an agent. If a pair had to be among the
/// three strongest of both, of many equal nodes only the first few would have edges: all others would prefer
/// the same three.
fn strongest(mut overlaps: Vec<((usize, usize), f64)>, nodes: usize) -> CoordinationGraph {
    overlaps.retain(|(_, overlap)| *overlap > LEAST_OVERLAP);
    overlaps.sort_by(|one, two| two.1.total_cmp(&one.1).then(one.0.cmp(&two.0)));
    let mut degree = vec![0; nodes];
    let mut edges = Vec::new();
    for ((one, two), _) in overlaps {
        if degree[one] < MOST_EDGES && degree[two] < MOST_EDGES {
            degree[one] += 1;
            degree[two] += 1;
            edges.push((one, two));
        }
    }
    CoordinationGraph { edges }
}
