//! What the agents' networks say of one observation (section 5).

use super::observation::ObservationShape;

/// What the agents' networks say of one observation.
#[derive(Debug, Clone, PartialEq)]
pub struct JointValues {
    /// The size of the observation.
    pub shape: ObservationShape,
    /// The utility f_i(a) of each action of each agent, `[V, 1 + K * L]`; without meaning where illegal.
    pub utilities: Vec<f32>,
    /// The factors g_i(m) of each task of each agent, `[V, 1 + K, R]`; their number R follows from the sizes.
    pub factors: Vec<f32>,
    /// The matrix B between the factors of two agents, `[R, R]`. The payoff uses its symmetric part.
    pub bilinear: Vec<f32>,
    /// The penalty kappa for two agents that start the same job.
    pub kappa: f32,
    /// The value Vs of the state.
    pub state: f32,
}

impl JointValues {
    /// R: the number of factors of a task.
    #[must_use]
    pub fn factor_count(&self) -> usize {
        self.factors.len() / (self.shape.nodes * self.shape.tasks()).max(1)
    }
}
