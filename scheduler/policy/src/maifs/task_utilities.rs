//! The utilities of the tasks: of each job at its best level, and of doing nothing (section 5).

use super::action::AgentAction;
use super::observation::{JointObservation, ObservationShape};

/// The utility F_i(m) of each task m of each agent i: `max_l f_i(m, l)` over its legal levels.
#[derive(Debug, Clone)]
pub(crate) struct TaskUtilities {
    shape: ObservationShape,
    /// `[V, 1 + K]`; the best legal action, if there is one, with its utility.
    best: Vec<Option<(f64, AgentAction)>>,
    has_node: Vec<bool>,
    agents: usize,
}

impl TaskUtilities {
    /// From the utilities f_i(a), `[V, 1 + K * L]`.
    pub(crate) fn of(observation: &JointObservation, utilities: &[f32]) -> TaskUtilities {
        let shape = observation.shape();
        let mut best: Vec<Option<(f64, AgentAction)>> = vec![None; shape.nodes * shape.tasks()];
        for node in 0..shape.nodes {
            for action in observation.actions_of(node) {
                let utility = utilities[node * shape.actions() + action.index(shape.levels)];
                let utility = if observation.has_node()[node] { f64::from(utility) } else { 0.0 };
                let known = &mut best[node * shape.tasks() + action.task()];
                if known.is_none_or(|(least, _)| utility > least) {
                    *known = Some((utility, action));
                }
            }
        }
        TaskUtilities { shape, best, has_node: observation.has_node().to_vec(), agents: observation.agents() }
    }

    /// The number of nodes with padding.
    pub(crate) fn nodes(&self) -> usize {
        self.shape.nodes
    }

    /// The number of tasks, with doing nothing.
    pub(crate) fn tasks(&self) -> usize {
        self.shape.tasks()
    }

    /// V: the number of agents without padding.
    pub(crate) fn agents(&self) -> f64 {
        self.agents as f64
    }

    pub(crate) fn has_node(&self, node: usize) -> bool {
        self.has_node[node]
    }

    /// The utility of a task, if it is legal at any level.
    pub(crate) fn utility(&self, node: usize, task: usize) -> Option<f64> {
        self.best[node * self.shape.tasks() + task].map(|(utility, _)| utility)
    }

    /// The legal tasks of a node with their utilities; the first is to do nothing.
    pub(crate) fn legal(&self, node: usize) -> impl Iterator<Item = (usize, f64)> {
        let row = &self.best[node * self.shape.tasks()..(node + 1) * self.shape.tasks()];
        row.iter().enumerate().filter_map(|(task, best)| Some((task, (*best)?.0)))
    }

    /// The task of an agent at its best level. A task that is not legal is not done.
    pub(crate) fn action(&self, node: usize, task: usize) -> AgentAction {
        self.best[node * self.shape.tasks() + task].map(|(_, action)| action).unwrap_or_default()
    }

    /// The best task of each agent alone.
    pub(crate) fn independent(&self) -> Vec<usize> {
        (0..self.nodes()).map(|node| argmax(self.legal(node))).collect()
    }

    /// By how much a task is better for an agent than its best other legal one; infinite without another.
    pub(crate) fn margin(&self, node: usize, task: usize) -> f64 {
        let others = self.legal(node).filter(|(other, _)| *other != task).map(|(_, utility)| utility);
        let own = self.utility(node, task).unwrap_or(f64::NEG_INFINITY);
        own - others.fold(f64::NEG_INFINITY, f64::max)
    }
}

/// The first place with the largest number; 0 if there is none.
pub(crate) fn argmax(numbers: impl Iterator<Item = (usize, f64)>) -> usize {
    let (mut best, mut most) = (0, f64::NEG_INFINITY);
    for (place, number) in numbers {
        if number > most {
            (best, most) = (place, number);
        }
    }
    best
}
