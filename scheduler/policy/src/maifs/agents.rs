//! The trait of agents, through which a policy asks networks that it knows nothing of.

use std::sync::Arc;

use super::action::AgentAction;
use super::coordination::Coordination;
use super::observation::JointObservation;
use super::reward_baseline::RewardBaseline;
use super::transition::JointTransition;
use super::values::JointValues;

/// Agents that a policy asks at every sub-step.
///
/// The policy computes the joint action from the answer, with `JointQ`. Answers depend on the observations
/// alone; only [`Agents::explore`] may be random, from a seed.
pub trait Agents: Send {
    /// How the agents are coordinated; it belongs to them because they were trained with it.
    fn coordination(&self) -> Coordination;

    /// L: the number of levels that the agents know. Observations must have as many; the numbers of nodes and
    /// jobs are free.
    fn levels(&self) -> usize;

    /// What the reward is measured against; only in training.
    fn baseline(&self) -> Option<Arc<RewardBaseline>> {
        None
    }

    /// Whether the teacher decides in their place, so that they only see what it does; only in training.
    fn follow_teacher(&self) -> bool {
        false
    }

    /// The values of each observation.
    fn values(&mut self, observations: &[Arc<JointObservation>]) -> Vec<JointValues>;

    /// Replaces some of the chosen actions by random legal ones, during training.
    fn explore(&mut self, observation: &JointObservation, action: &mut [AgentAction]) {
        let _ = (observation, action);
    }

    /// Learns from a sub-step, during training.
    fn decided(&mut self, transition: JointTransition) {
        drop(transition);
    }
}
