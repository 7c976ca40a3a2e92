//! The payoffs of the edges of a coordination graph (section 5).

use super::graph::CoordinationGraph;
use super::values::JointValues;

/// The payoff `f_ij(m, n) / |E|` of each edge for each task m of its first and n of its second agent.
#[derive(Debug)]
pub(crate) struct Payoffs {
    tasks: usize,
    /// `[edges, 1 + K, 1 + K]`.
    tables: Vec<f64>,
}

impl Payoffs {
    /// From `f_ij(m, n) = (g_i(m).B g_j(n) + g_j(n).B g_i(m))/2 - kappa [m = n != 0]`.
    pub(crate) fn of(values: &JointValues, graph: &CoordinationGraph) -> Payoffs {
        let tasks = values.shape.tasks();
        let rank = values.factor_count();
        let mixed = mixed_factors(values, graph);
        let kappa = f64::from(values.kappa);
        let edges = graph.edges().len() as f64;
        let mut tables = Vec::with_capacity(graph.edges().len() * tasks * tasks);
        for (one, two) in graph.edges() {
            for first in 0..tasks {
                let at = (one * tasks + first) * rank;
                let factors = &values.factors[at..at + rank];
                for second in 0..tasks {
                    let at = (two * tasks + second) * rank;
                    let product: f64 =
                        factors.iter().zip(&mixed[at..at + rank]).map(|(g, h)| f64::from(*g) * h).sum();
                    let same = first == second && first != 0;
                    tables.push(if same { product - kappa } else { product } / edges);
                }
            }
        }
        Payoffs { tasks, tables }
    }

    /// The payoff of an edge, by its index, divided by the number of edges.
    pub(crate) fn part(&self, edge: usize, first: usize, second: usize) -> f64 {
        self.tables[(edge * self.tasks + first) * self.tasks + second]
    }
}

/// The factors of the second agents of edges times the symmetric part of B, `[V, 1 + K, R]`.
fn mixed_factors(values: &JointValues, graph: &CoordinationGraph) -> Vec<f64> {
    let (tasks, rank) = (values.shape.tasks(), values.factor_count());
    let entry = |row: usize, column: usize| f64::from(values.bilinear[row * rank + column]);
    let symmetric: Vec<f64> = (0..rank * rank)
        .map(|at| f64::midpoint(entry(at / rank, at % rank), entry(at % rank, at / rank)))
        .collect();
    let mut mixed = vec![0.0; values.factors.len()];
    let mut is_second = vec![false; values.shape.nodes];
    graph.edges().iter().for_each(|(_, two)| is_second[*two] = true);
    for row in (0..values.shape.nodes * tasks).filter(|row| is_second[row / tasks]) {
        let factors = &values.factors[row * rank..(row + 1) * rank];
        for (to, weights) in mixed[row * rank..].iter_mut().zip(symmetric.chunks(rank)) {
            *to = weights.iter().zip(factors).map(|(weight, factor)| weight * f64::from(*factor)).sum();
        }
    }
    mixed
}
