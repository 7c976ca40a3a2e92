//! A step of experience that a learner is told.

use std::sync::Arc;

use super::action::{AgentAction, JointAction};
use super::observation::JointObservation;

/// One sub-step and what came of it (section 8).
///
/// Observations are shared: the next one of a transition is the first one of the transition that follows.
#[derive(Debug, Clone, PartialEq)]
pub struct JointTransition {
    /// What the agents observed.
    pub observation: Arc<JointObservation>,
    /// What they chose, after exploration and before conflicts were resolved: the penalty of conflicts
    /// belongs to it. Every action is legal in the observation.
    pub action: JointAction,
    /// The reward until the next observation.
    pub reward: f32,
    /// The discount of the next observation's value, from 0 to 1: 1 within a decision round.
    pub discount: f32,
    /// What they observe next; `None` if the episode has ended.
    pub next: Option<Arc<JointObservation>>,
    /// What the teacher does in the place of each agent; empty if there is none. `None` leaves an agent out:
    /// where equal nodes are idle and the teacher fills one of them, the choice between them teaches nothing.
    pub teacher: Vec<Option<AgentAction>>,
}
