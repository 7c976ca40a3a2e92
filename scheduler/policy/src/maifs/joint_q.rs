//! The value of a joint action, and the joint action with the largest value that is found (sections 5 to 7).

use std::ops::Range;

use super::action::{AgentAction, JointAction};
use super::coordination::Coordination;
use super::graph::CoordinationGraph;
use super::max_plus::{Factors, ROUNDS, max_plus};
use super::observation::JointObservation;
use super::payoffs::Payoffs;
use super::resolve::resolve;
use super::task_utilities::TaskUtilities;
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

    /// The best joint action that is found; several agents may still start the same job. No room is kept free
    /// for jobs that are to come: where all agents would rather do nothing, the one starts a job that minds
    /// least.
    #[must_use]
    pub fn best_action(&self) -> JointAction {
        let mut action = match self.coordination {
            Coordination::Agents(_) => {
                let tasks = max_plus(&self.factors(), ROUNDS);
                tasks.iter().enumerate().map(|(node, task)| self.utilities.action(node, *task)).collect()
            }
            Coordination::Single => self.nothing(),
        };
        if action == self.nothing()
            && let Some((node, start)) = self.best_start(1..self.utilities.tasks())
        {
            action[node] = start;
        }
        action
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

    /// How the agents agree.
    pub(super) const fn coordination(&self) -> Coordination {
        self.coordination
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

    fn nothing(&self) -> JointAction {
        vec![AgentAction::Nothing; self.utilities.nodes()]
    }

    /// Of all legal starts of these tasks the one by which Q grows most: a single agent compares the starts
    /// themselves, agents compare each with doing nothing.
    pub(super) fn best_start(&self, tasks: Range<usize>) -> Option<(usize, AgentAction)> {
        let worth = |node: usize, task: usize| {
            let utility = self.utilities.utility(node, task)?;
            Some(match self.coordination {
                Coordination::Single => utility,
                Coordination::Agents(_) => utility - self.utilities.utility(node, 0).unwrap_or_default(),
            })
        };
        let starts = (0..self.utilities.nodes())
            .flat_map(|node| tasks.clone().filter_map(move |task| Some((node, task, worth(node, task)?))));
        let best = starts.reduce(|best, start| if start.2 > best.2 { start } else { best });
        best.map(|(node, task, _)| (node, self.utilities.action(node, task)))
    }
}
