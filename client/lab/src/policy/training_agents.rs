//! Agents of training runs: ones that only watch the teacher, ones that are rewarded, and trained ones whose
//! conflicts are counted.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use cohabit_predict::maifs::{ExploringAgents, NetworkAgents, NetworkVariant};
use cohabit_sim::maifs::{
    AgentAction, Agents, Coordination, JointObservation, JointTransition, JointValues, RewardBaseline,
};

/// What agents are rewarded against whose rewards do not count.
fn no_baseline() -> Arc<RewardBaseline> {
    Arc::new(RewardBaseline { mean_seconds: 1.0, jobs: Vec::new() })
}

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
        Some(no_baseline())
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

/// Trained agents, and how many of them had to sit out in each sub-step, because another took the job that
/// they had chosen.
pub(super) struct CountedAgents {
    agents: NetworkAgents,
    conflicts: Sender<usize>,
}

impl CountedAgents {
    /// The agents for one run, and the conflicts in each of its sub-steps once it is over.
    pub(super) fn new(agents: NetworkAgents) -> (CountedAgents, Receiver<usize>) {
        let (conflicts, counted) = channel();
        (CountedAgents { agents, conflicts }, counted)
    }
}

impl Agents for CountedAgents {
    fn coordination(&self) -> Coordination {
        self.agents.coordination()
    }

    fn levels(&self) -> usize {
        self.agents.levels()
    }

    /// Only agents that are rewarded are told what they have decided.
    fn baseline(&self) -> Option<Arc<RewardBaseline>> {
        Some(no_baseline())
    }

    fn values(&mut self, observations: &[Arc<JointObservation>]) -> Vec<JointValues> {
        self.agents.values(observations)
    }

    fn decided(&mut self, transition: JointTransition) {
        // Nobody listens once the training has failed.
        self.conflicts.send(conflicts(&transition.action)).unwrap_or_default();
    }
}

/// How many agents chose a job that another one chose as well, beyond one for each job.
fn conflicts(action: &[AgentAction]) -> usize {
    let chosen = action.iter().filter_map(|it| match it {
        AgentAction::Start { job, .. } => Some(*job),
        AgentAction::Nothing => None,
    });
    let chosen: Vec<usize> = chosen.collect();
    chosen.len() - chosen.iter().collect::<BTreeSet<_>>().len()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_beyond_the_first_of_a_job_are_conflicts() {
        let start = |job| AgentAction::Start { job, level: 1 };
        assert_eq!(conflicts(&[start(0), AgentAction::Nothing, start(1), AgentAction::Nothing]), 0);
        assert_eq!(conflicts(&[start(0), start(1), start(0), start(0), start(1)]), 3);
    }
}
