//! Agents of training runs: ones that only watch the teacher, and ones that are rewarded.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use cohabit_predict::maifs::{ExploringAgents, NetworkVariant};
use cohabit_sim::maifs::{
    AgentAction, Agents, Coordination, JointObservation, JointTransition, JointValues, RewardBaseline,
};

/// Agents that let the teacher decide, and send what it does.
pub(super) struct TeacherWatch {
    variant: NetworkVariant,
    transitions: Sender<JointTransition>,
}

impl TeacherWatch {
    /// The agents in the place of those of a variant, and what they will have seen when the run is over.
    pub(super) fn new(variant: NetworkVariant) -> (TeacherWatch, Receiver<JointTransition>) {
        let (transitions, seen) = channel();
        (TeacherWatch { variant, transitions }, seen)
    }
}

impl Agents for TeacherWatch {
    fn coordination(&self) -> Coordination {
        self.variant.coordination
    }

    fn levels(&self) -> usize {
        self.variant.levels
    }

    /// Imitation needs no rewards: the teacher is compared with an empty system.
    fn baseline(&self) -> Option<Arc<RewardBaseline>> {
        Some(Arc::new(RewardBaseline { mean_seconds: 1.0, jobs: Vec::new() }))
    }

    fn follow_teacher(&self) -> bool {
        true
    }

    fn values(&mut self, _: &[Arc<JointObservation>]) -> Vec<JointValues> {
        Vec::new()
    }

    fn decided(&mut self, transition: JointTransition) {
        // Nobody listens once the training has failed.
        self.transitions.send(transition).unwrap_or_default();
    }
}

/// Exploring agents that are rewarded for fewer jobs in the system than the teacher has.
pub(super) struct RewardedAgents {
    pub(super) agents: ExploringAgents,
    pub(super) baseline: Arc<RewardBaseline>,
}

impl Agents for RewardedAgents {
    fn coordination(&self) -> Coordination {
        self.agents.coordination()
    }

    fn levels(&self) -> usize {
        self.agents.levels()
    }

    fn baseline(&self) -> Option<Arc<RewardBaseline>> {
        Some(Arc::clone(&self.baseline))
    }

    fn values(&mut self, observations: &[Arc<JointObservation>]) -> Vec<JointValues> {
        self.agents.values(observations)
    }

    fn explore(&mut self, observation: &JointObservation, action: &mut [AgentAction]) {
        self.agents.explore(observation, action);
    }

    fn decided(&mut self, transition: JointTransition) {
        self.agents.decided(transition);
    }
}
