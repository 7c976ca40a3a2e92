//! The value of a joint action, and the joint action with the largest value that is found (sections 5 to 7).

use super::action::{AgentAction, JointAction};
use super::coordination::Coordination;
use super::graph::CoordinationGraph;
use super::max_plus::{Factors, ROUNDS, max_plus};
use super::observation::JointObservation;
use super::payoffs::Payoffs;
use super::resolve::resolve;
use super::task_utilities::{TaskUtilities, argmax};
use super::values::JointValues;

/// The function Q(a) of one observation.
#[derive(Debug)]
pub struct JointQ<'a> {
    observation: &'a JointObservation,
    values: &'a JointValues,
    coordination: Coordination,
    utilities: TaskUtilities,
    graph: CoordinationGraph,
    payoffs: Payoffs,
}

/// A joint action without conflicts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedAction {
    /// What each agent does.
    pub action: JointAction,
    /// The number of agents that sit out because another one starts their job.
    pub conflicts: usize,
}

impl<'a> JointQ<'a> {
    /// Q for these values of an observation.
    #[must_use]
    pub fn of(
        observation: &'a JointObservation,
        values: &'a JointValues,
        coordination: Coordination,
    ) -> JointQ<'a> {
        let utilities = TaskUtilities::of(observation, &values.utilities);
        let graph = CoordinationGraph::of(coordination, &utilities);
        let payoffs = Payoffs::of(values, &graph);
        JointQ { observation, values, coordination, utilities, graph, payoffs }
    }

    /// The pairs of agents that are coordinated, each with the smaller index first.
    #[must_use]
    pub fn edges(&self) -> &[(usize, usize)] {
        self.graph.edges()
    }

    /// The best joint action that is found; several agents may still start the same job.
    #[must_use]
    pub fn best_action(&self) -> JointAction {
        match self.coordination {
            Coordination::Agents(_) => {
                let tasks = max_plus(&self.factors(), ROUNDS);
                tasks.iter().enumerate().map(|(node, task)| self.utilities.action(node, *task)).collect()
            }
            Coordination::Single => self.best_start(),
        }
    }

    /// Q(a), with the value of the state.
    #[must_use]
    pub fn value(&self, action: &[AgentAction]) -> f64 {
        let state = f64::from(self.values.state);
        let utility = |(node, action): (usize, &AgentAction)| self.utility(node, *action);
        match (self.coordination, action.iter().enumerate().find(|(_, it)| **it != AgentAction::Nothing)) {
            (Coordination::Single, Some(start)) => utility(start) + state,
            (Coordination::Single, None) | (Coordination::Agents(_), _) => {
                let utilities: f64 = action.iter().enumerate().map(utility).sum();
                let tasks: Vec<usize> = action.iter().map(|it| it.task()).collect();
                utilities / self.utilities.agents() + self.factors().mean_payoff(&tasks) + state
            }
        }
    }

    /// Gives each job that several agents start to the one with the largest margin (section 7, step 1).
    #[must_use]
    pub fn resolved(&self, action: &[AgentAction]) -> ResolvedAction {
        let mut tasks: Vec<usize> = action.iter().map(|it| it.task()).collect();
        let conflicts = resolve(&self.utilities, &mut tasks);
        let kept = |(action, task): (&AgentAction, &usize)| match task {
            0 => AgentAction::Nothing,
            _ => *action,
        };
        ResolvedAction { action: action.iter().zip(&tasks).map(kept).collect(), conflicts }
    }

    /// By how much an action is better for an agent than its best other legal task, for explanations.
    #[must_use]
    pub fn margin(&self, node: usize, action: AgentAction) -> f64 {
        self.utilities.margin(node, action.task())
    }

    fn factors(&self) -> Factors<'_> {
        Factors { utilities: &self.utilities, graph: &self.graph, payoffs: &self.payoffs }
    }

    /// The utility of an action; padding counts nothing.
    fn utility(&self, node: usize, action: AgentAction) -> f64 {
        let shape = self.values.shape;
        let is_agent = self.observation.has_node()[node];
        let at = node * shape.actions() + action.index(shape.levels);
        if is_agent { f64::from(self.values.utilities[at]) } else { 0.0 }
    }

    /// The best single start, or nothing at all if the mean utility of doing nothing is larger.
    fn best_start(&self) -> JointAction {
        let nodes = self.observation.shape().nodes;
        let nothing = vec![AgentAction::Nothing; nodes];
        let starts: Vec<(usize, AgentAction)> = (0..nodes)
            .flat_map(|node| self.observation.actions_of(node).skip(1).map(move |action| (node, action)))
            .collect();
        let idle = (0..nodes).map(|node| self.utility(node, AgentAction::Nothing)).sum::<f64>();
        let utilities = starts.iter().map(|(node, action)| self.utility(*node, *action));
        let options = std::iter::once(idle / self.utilities.agents()).chain(utilities);
        match argmax(options.enumerate()).checked_sub(1).map(|at| starts[at]) {
            None => nothing,
            Some((chosen, action)) => {
                let own = |node| if node == chosen { action } else { AgentAction::Nothing };
                (0..nodes).map(own).collect()
            }
        }
    }
}
