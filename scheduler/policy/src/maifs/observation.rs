//! What all agents observe at one sub-step (section 3).

use super::action::AgentAction;

/// The number of features of a node.
pub const SERVER_FEATURES: usize = 18;
/// The number of features of a job of the window.
pub const TASK_FEATURES: usize = 16;
/// The number of features of a job on a node.
pub const PAIR_FEATURES: usize = 4;

/// The size of an observation. Agents work with other sizes than those that they were trained on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObservationShape {
    /// V: the number of nodes, each an agent.
    pub nodes: usize,
    /// K: the number of places in the window of waiting jobs.
    pub jobs: usize,
    /// L: the number of levels of a share.
    pub levels: usize,
}

impl ObservationShape {
    /// The number of actions of an agent, `1 + K * L`.
    #[must_use]
    pub fn actions(self) -> usize {
        1 + self.jobs * self.levels
    }

    /// The number of actions of an agent without levels, `1 + K`.
    #[must_use]
    pub fn tasks(self) -> usize {
        1 + self.jobs
    }
}

/// What all agents observe at one sub-step.
///
/// A new observation is empty: every node and every place in the window is padding, and only action 0 is
/// legal. Padding changes no answer. Times and amounts of work come as `ln(1 + x)`; the scales of the
/// features belong to the agents. A feature that is not finite counts as 0.
#[derive(Debug, Clone, PartialEq)]
pub struct JointObservation {
    shape: ObservationShape,
    servers: Vec<f32>,
    tasks: Vec<f32>,
    pairs: Vec<f32>,
    legal: Vec<bool>,
    has_node: Vec<bool>,
    has_job: Vec<bool>,
}

impl JointObservation {
    /// An empty observation.
    #[must_use]
    pub fn new(shape: ObservationShape) -> JointObservation {
        let ObservationShape { nodes, jobs, .. } = shape;
        let legal = (0..nodes * shape.actions()).map(|at| at % shape.actions() == 0).collect();
        JointObservation {
            shape,
            servers: vec![0.0; nodes * SERVER_FEATURES],
            tasks: vec![0.0; jobs * TASK_FEATURES],
            pairs: vec![0.0; nodes * jobs * PAIR_FEATURES],
            legal,
            has_node: vec![false; nodes],
            has_job: vec![false; jobs],
        }
    }

    /// Sets the features of a node.
    pub fn set_server(&mut self, node: usize, features: &[f32; SERVER_FEATURES]) {
        self.has_node[node] = true;
        set_row(&mut self.servers, node, features);
    }

    /// Sets the features of a job of the window.
    pub fn set_task(&mut self, job: usize, features: &[f32; TASK_FEATURES]) {
        self.has_job[job] = true;
        set_row(&mut self.tasks, job, features);
    }

    /// Sets the features of a job on a node.
    pub fn set_pair(&mut self, node: usize, job: usize, features: &[f32; PAIR_FEATURES]) {
        set_row(&mut self.pairs, node * self.shape.jobs + job, features);
    }

    /// Lets a node start a job at a level.
    ///
    /// # Panics
    /// If the node or the job is padding.
    pub fn allow(&mut self, node: usize, job: usize, level: usize) {
        assert!(self.has_node[node] && self.has_job[job], "node {node} or job {job} is padding");
        let at = self.place(node, AgentAction::Start { job, level });
        self.legal[at] = true;
    }

    /// Forbids a node to start a job at any level (section 7, step 3).
    pub fn forbid(&mut self, node: usize, job: usize) {
        for level in 0..self.shape.levels {
            let at = self.place(node, AgentAction::Start { job, level });
            self.legal[at] = false;
        }
    }

    /// The size.
    #[must_use]
    pub fn shape(&self) -> ObservationShape {
        self.shape
    }

    /// The features of the nodes, `[V, 18]`.
    #[must_use]
    pub fn servers(&self) -> &[f32] {
        &self.servers
    }

    /// The features of the jobs of the window, `[K, 16]`.
    #[must_use]
    pub fn tasks(&self) -> &[f32] {
        &self.tasks
    }

    /// The features of the jobs on the nodes, `[V, K, 4]`.
    #[must_use]
    pub fn pairs(&self) -> &[f32] {
        &self.pairs
    }

    /// Which actions are legal, `[V, 1 + K * L]`.
    #[must_use]
    pub fn legal(&self) -> &[bool] {
        &self.legal
    }

    /// Which actions of a node are legal, `[1 + K * L]`.
    #[must_use]
    pub fn legal_of(&self, node: usize) -> &[bool] {
        let actions = self.shape.actions();
        &self.legal[node * actions..(node + 1) * actions]
    }

    /// The legal actions of a node; the first is to do nothing.
    pub fn actions_of(&self, node: usize) -> impl Iterator<Item = AgentAction> {
        let levels = self.shape.levels;
        let legal = self.legal_of(node).iter().enumerate().filter(|(_, is_legal)| **is_legal);
        legal.map(move |(index, _)| AgentAction::from_index(index, levels))
    }

    /// Whether a node may do this.
    #[must_use]
    pub fn is_legal(&self, node: usize, action: AgentAction) -> bool {
        self.legal[self.place(node, action)]
    }

    /// Whether any node may start a job.
    #[must_use]
    pub fn is_anything_legal(&self) -> bool {
        (0..self.shape.nodes).any(|node| self.legal_of(node)[1..].contains(&true))
    }

    /// Whether each node is one, or padding, `[V]`.
    #[must_use]
    pub fn has_node(&self) -> &[bool] {
        &self.has_node
    }

    /// Whether each place in the window holds a job, `[K]`.
    #[must_use]
    pub fn has_job(&self) -> &[bool] {
        &self.has_job
    }

    /// The number of nodes without padding, at least 1.
    #[must_use]
    pub fn agents(&self) -> usize {
        self.has_node.iter().filter(|has| **has).count().max(1)
    }

    fn place(&self, node: usize, action: AgentAction) -> usize {
        node * self.shape.actions() + action.index(self.shape.levels)
    }
}

fn set_row(rows: &mut [f32], row: usize, features: &[f32]) {
    let rows = &mut rows[row * features.len()..(row + 1) * features.len()];
    for (to, from) in rows.iter_mut().zip(features) {
        *to = if from.is_finite() { *from } else { 0.0 };
    }
}
