//! Max-plus: messages along the edges of a coordination graph that agree on a joint action (section 6).
//!
//! It is exact on trees that are no deeper than it has rounds. On graphs with circles it may not converge;
//! the best joint action on the way is the answer, so that it is never worse than what the agents would do
//! alone.

use super::graph::CoordinationGraph;
use super::payoffs::Payoffs;
use super::resolve::resolve;
use super::task_utilities::{TaskUtilities, argmax};

/// The number of rounds.
pub(crate) const ROUNDS: usize = 6;
/// Sums that differ by less are equal.
const ROUNDING: f64 = 1e-9;

/// A sum of utilities of agents and payoffs of edges that is to be maximised.
#[derive(Debug)]
pub(crate) struct Factors<'a> {
    pub(crate) utilities: &'a TaskUtilities,
    pub(crate) graph: &'a CoordinationGraph,
    pub(crate) payoffs: &'a Payoffs,
}

impl Factors<'_> {
    /// `(1/V) sum_i F_i(m_i) + (1/|E|) sum_E f_ij(m_i, m_j)`.
    pub(crate) fn total(&self, tasks: &[usize]) -> f64 {
        let utility = |(node, task): (usize, &usize)| self.utilities.utility(node, *task).unwrap_or_default();
        let utilities: f64 = tasks.iter().enumerate().map(utility).sum();
        utilities / self.utilities.agents() + self.mean_payoff(tasks)
    }

    /// `(1/|E|) sum_E f_ij(m_i, m_j)`; 0 without edges.
    pub(crate) fn mean_payoff(&self, tasks: &[usize]) -> f64 {
        let payoff =
            |(edge, (one, two)): (usize, &(usize, usize))| self.payoffs.part(edge, tasks[*one], tasks[*two]);
        self.graph.edges().iter().enumerate().map(payoff).sum()
    }
}

/// The best tasks that this many rounds find, one for each agent.
pub(crate) fn max_plus(factors: &Factors<'_>, rounds: usize) -> Vec<usize> {
    let mut best = factors.utilities.independent();
    if factors.graph.edges().is_empty() {
        return best;
    }
    let mut most = factors.total(&best);
    let mut messages = Messages::new(factors);
    for _ in 0..rounds {
        messages.send(factors);
        let decoded = messages.decode(factors);
        let mut repaired = decoded.clone();
        resolve(factors.utilities, &mut repaired);
        for found in [decoded, repaired] {
            let total = factors.total(&found);
            if total > most + ROUNDING {
                (best, most) = (found, total);
            }
        }
    }
    best
}

/// The messages of a round.
struct Messages {
    tasks: usize,
    /// Along each edge in both directions, to each task of the receiver: `[edges, 2, 1 + K]`. The first
    /// direction is to the second agent.
    sent: Vec<f64>,
    /// The sum of what each agent receives for each of its tasks, `[V, 1 + K]`.
    received: Vec<f64>,
}

/// A message: one direction of an edge.
#[derive(Clone, Copy)]
struct Direction {
    edge: usize,
    from: usize,
    to: usize,
    is_forward: bool,
}

impl Messages {
    fn new(factors: &Factors<'_>) -> Messages {
        let tasks = factors.utilities.tasks();
        let edges = factors.graph.edges().len();
        Messages {
            tasks,
            sent: vec![0.0; edges * 2 * tasks],
            received: vec![0.0; factors.utilities.nodes() * tasks],
        }
    }

    /// All agents send at once: each message uses those of the round before.
    fn send(&mut self, factors: &Factors<'_>) {
        let mut sent = vec![0.0; self.sent.len()];
        let mut received = vec![0.0; self.received.len()];
        for direction in directions(factors.graph) {
            let at = direction.place(self.tasks);
            let message = &mut sent[at..at + self.tasks];
            self.message(factors, direction, message);
            let receiver = &mut received[direction.to * self.tasks..];
            receiver.iter_mut().zip(message).for_each(|(sum, part)| *sum += *part);
        }
        (self.sent, self.received) = (sent, received);
    }

    /// `mu_ij(n) = max_m [ F_i(m)/V + sum_{k != j} mu_ki(m) + f_ij(m, n)/|E| ]` minus its mean over the legal
    /// n; 0 where illegal.
    fn message(&self, factors: &Factors<'_>, direction: Direction, message: &mut [f64]) {
        let Direction { edge, from, to, is_forward } = direction;
        let agents = factors.utilities.agents();
        let back = direction.reversed().place(self.tasks);
        let known = |task: usize| self.received[from * self.tasks + task] - self.sent[back + task];
        let sender: Vec<(usize, f64)> =
            factors.utilities.legal(from).map(|(task, own)| (task, own / agents + known(task))).collect();
        let (mut sum, mut count) = (0.0, 0.0);
        for (receiving, _) in factors.utilities.legal(to) {
            let mut most = f64::NEG_INFINITY;
            for (sending, base) in &sender {
                let (first, second) = if is_forward { (*sending, receiving) } else { (receiving, *sending) };
                let total = base + factors.payoffs.part(edge, first, second);
                most = if total > most { total } else { most };
            }
            message[receiving] = most;
            sum += most;
            count += 1.0;
        }
        let mean = sum / count;
        for (receiving, _) in factors.utilities.legal(to) {
            message[receiving] -= mean;
        }
    }

    /// The best task of each agent with what it received.
    ///
    /// Where messages go in circles, two tasks are often equal: they are sums of the same terms. Rounding
    /// must not decide between them, so the one with the larger own utility is taken.
    fn decode(&self, factors: &Factors<'_>) -> Vec<usize> {
        let agents = factors.utilities.agents();
        let decoded = |node: usize| {
            let with = |task: usize, own: f64| own / agents + self.received[node * self.tasks + task];
            let totals = factors.utilities.legal(node).map(|(task, own)| with(task, own));
            let most = totals.fold(f64::NEG_INFINITY, f64::max);
            let is_best = |(task, own): &(usize, f64)| with(*task, *own) > most - ROUNDING;
            argmax(factors.utilities.legal(node).filter(is_best))
        };
        (0..factors.utilities.nodes()).map(decoded).collect()
    }
}

/// Every edge in both directions.
fn directions(graph: &CoordinationGraph) -> impl Iterator<Item = Direction> {
    graph.edges().iter().enumerate().flat_map(|(edge, (one, two))| {
        let forward = Direction { edge, from: *one, to: *two, is_forward: true };
        [forward, forward.reversed()]
    })
}

impl Direction {
    fn reversed(self) -> Direction {
        Direction { from: self.to, to: self.from, is_forward: !self.is_forward, ..self }
    }

    fn place(self, tasks: usize) -> usize {
        (2 * self.edge + usize::from(!self.is_forward)) * tasks
    }
}
