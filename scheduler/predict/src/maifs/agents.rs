//! Agents for policies: greedy, and exploring ones that hand on what they see.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use cohabit_policy::maifs::{
    AgentAction, Agents, Coordination, JointObservation, JointTransition, JointValues,
};
use rand_chacha::ChaCha8Rng;

use super::inference::AgentInference;
use crate::random::RandomExt;

/// Agents that choose what their networks value most.
#[derive(Debug, Clone)]
pub struct NetworkAgents {
    pub(super) inference: Arc<AgentInference>,
    pub(super) coordination: Coordination,
}

impl Agents for NetworkAgents {
    fn coordination(&self) -> Coordination {
        self.coordination
    }

    fn levels(&self) -> usize {
        self.inference.levels()
    }

    fn values(&mut self, observations: &[Arc<JointObservation>]) -> Vec<JointValues> {
        observations.iter().map(|it| self.inference.values(it)).collect()
    }
}

/// Agents that sometimes act at random, and send all transitions to the loop that trains them.
#[derive(Debug)]
pub struct ExploringAgents {
    pub(super) agents: NetworkAgents,
    /// The probability of a random job, and of a random level, of each agent.
    pub(super) epsilon: f64,
    pub(super) random: ChaCha8Rng,
    pub(super) transitions: Sender<JointTransition>,
}

impl Agents for ExploringAgents {
    fn coordination(&self) -> Coordination {
        self.agents.coordination()
    }

    fn levels(&self) -> usize {
        self.agents.levels()
    }

    fn values(&mut self, observations: &[Arc<JointObservation>]) -> Vec<JointValues> {
        self.agents.values(observations)
    }

    fn explore(&mut self, observation: &JointObservation, action: &mut [AgentAction]) {
        match self.agents.coordination {
            Coordination::Agents(_) => {
                for (node, own) in action.iter_mut().enumerate() {
                    self.explore_agent(observation, node, own);
                }
            }
            Coordination::Single => self.explore_start(observation, action),
        }
    }

    fn decided(&mut self, transition: JointTransition) {
        // Nobody listens once the training has ended.
        self.transitions.send(transition).unwrap_or_default();
    }
}

impl ExploringAgents {
    /// Draws a task uniformly from the legal ones with probability epsilon, and with the same probability a
    /// level. For a drawn task nobody knows the best level: it is drawn as well.
    fn explore_agent(&mut self, observation: &JointObservation, node: usize, own: &mut AgentAction) {
        let draws_task = self.random.part() < self.epsilon;
        let draws_level = self.random.part() < self.epsilon;
        if draws_task {
            let mut tasks: Vec<usize> = observation.actions_of(node).map(AgentAction::task).collect();
            tasks.dedup();
            let task = tasks[self.random.below(tasks.len())];
            *own = self.level(observation, node, task);
        } else if draws_level {
            *own = self.level(observation, node, own.task());
        }
    }

    /// A task at a legal level, drawn uniformly.
    fn level(&mut self, observation: &JointObservation, node: usize, task: usize) -> AgentAction {
        let levels: Vec<AgentAction> =
            observation.actions_of(node).filter(|action| action.task() == task).collect();
        levels.get(self.random.below(levels.len().max(1))).copied().unwrap_or_default()
    }

    /// Draws uniformly from all legal starts and doing nothing, with probability epsilon.
    fn explore_start(&mut self, observation: &JointObservation, action: &mut [AgentAction]) {
        if self.random.part() >= self.epsilon {
            return;
        }
        let starts: Vec<(usize, AgentAction)> = (0..action.len())
            .flat_map(|node| observation.actions_of(node).skip(1).map(move |start| (node, start)))
            .collect();
        action.fill(AgentAction::Nothing);
        if let Some((node, start)) = starts.get(self.random.below(starts.len() + 1)) {
            action[*node] = *start;
        }
    }
}
