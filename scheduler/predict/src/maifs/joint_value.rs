//! Q(a) of a batch as a tensor with gradients (section 5).

use candle_core::{Device, Result, Tensor};
use cohabit_policy::maifs::{AgentAction, Coordination, JointAction};

use super::networks::{AgentNetworks, Encoded};
use super::observation_batch::ObservationBatch;

/// Joint actions of a batch, each with the pairs of agents that are coordinated.
#[derive(Debug)]
pub(super) struct ChosenActions<'a> {
    /// One for each observation.
    pub(super) actions: Vec<&'a JointAction>,
    /// The edges of each observation's graph.
    pub(super) edges: Vec<Vec<(usize, usize)>>,
    pub(super) coordination: Coordination,
}

impl ChosenActions<'_> {
    /// `Q(a) = (1/V) sum_i f_i(a_i) + (1/|E|) sum_E f_ij(m_i, m_j) + Vs`, `[N]`, with the utilities
    /// `[N, V, 1 + K * L]`.
    ///
    /// The single agent has the utility of its one start, or the mean utility of doing nothing, instead of
    /// the first sum.
    pub(super) fn values(
        &self,
        networks: &AgentNetworks,
        encoded: &Encoded,
        utilities: &Tensor,
        batch: &ObservationBatch,
    ) -> Result<Tensor> {
        let indices = self.per_agent(batch, |action| action.index(batch.levels) as u32);
        let indices = Tensor::from_vec(indices, (batch.count, batch.nodes, 1), &Device::Cpu)?;
        let chosen = utilities.gather(&indices, 2)?.squeeze(2)?;
        let own = (chosen * self.utility_weights(batch)?)?.sum(1)?;
        let factors = networks.factors(encoded, batch, &self.per_agent(batch, AgentAction::task))?;
        let (edges, same) = self.edge_weights(batch)?;
        let payoffs = (networks.payoffs(&factors)? * edges)?.sum((1, 2))?;
        let penalty = same.broadcast_mul(&networks.kappa()?)?;
        ((own + payoffs)? - penalty)? + networks.state(encoded, batch)?
    }

    /// A number of each agent's action, `[N * V]`; padding does nothing.
    fn per_agent<T>(&self, batch: &ObservationBatch, of: impl Fn(AgentAction) -> T) -> Vec<T> {
        let padded = |action: &&JointAction| -> Vec<T> {
            (0..batch.nodes).map(|node| of(action.get(node).copied().unwrap_or_default())).collect()
        };
        self.actions.iter().flat_map(padded).collect()
    }

    /// How much the utility of each agent's action counts, `[N, V]`.
    fn utility_weights(&self, batch: &ObservationBatch) -> Result<Tensor> {
        if self.coordination != Coordination::Single {
            return Ok(batch.node_weights.clone());
        }
        let starts = self.per_agent(batch, |action| f32::from(u8::from(action != AgentAction::Nothing)));
        let starts = Tensor::from_vec(starts, (batch.count, batch.nodes), &Device::Cpu)?;
        let starts = starts.to_dtype(batch.node_weights.dtype())?;
        let is_idle = (1.0 - starts.max_keepdim(1)?)?;
        starts + batch.node_weights.broadcast_mul(&is_idle)?
    }

    /// 1/|E| at each edge, `[N, V, V]`, and the part of the edges whose agents start the same job, `[N]`.
    fn edge_weights(&self, batch: &ObservationBatch) -> Result<(Tensor, Tensor)> {
        let nodes = batch.nodes;
        let mut weights = vec![0.0_f32; batch.count * nodes * nodes];
        let mut same = vec![0.0_f32; batch.count];
        for (at, (edges, action)) in self.edges.iter().zip(&self.actions).enumerate() {
            let weight = 1.0 / edges.len().max(1) as f32;
            for (one, two) in edges {
                weights[(at * nodes + one) * nodes + two] = weight;
                let is_same = action[*one].task() == action[*two].task() && action[*one].task() != 0;
                same[at] += if is_same { weight } else { 0.0 };
            }
        }
        let precision = batch.node_weights.dtype();
        let weights = Tensor::from_vec(weights, (batch.count, nodes, nodes), &Device::Cpu)?;
        let same = Tensor::from_vec(same, batch.count, &Device::Cpu)?;
        Ok((weights.to_dtype(precision)?, same.to_dtype(precision)?))
    }
}
