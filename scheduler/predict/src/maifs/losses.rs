//! The losses of Q-learning (section 8).

use candle_core::{Device, Result, Tensor};
use cohabit_policy::maifs::{JointTransition, coordinated_pairs};

use super::imitation::TaughtActions;
use super::joint_value::ChosenActions;
use super::networks::AgentNetworks;
use super::observation_batch::ObservationBatch;
use super::settings::LearnerSettings;
use crate::networks::PRECISION;

/// The loss of Q for these targets, and the margin loss of the teacher's actions if there are any.
pub(super) fn losses(
    networks: &AgentNetworks,
    settings: &LearnerSettings,
    batch: &ObservationBatch,
    transitions: &[&JointTransition],
    targets: &[f32],
) -> Result<(Tensor, Option<Tensor>)> {
    let coordination = settings.variant.coordination;
    let encoded = networks.encode(batch)?;
    let utilities = networks.utilities(&encoded, batch)?;
    let known = plain_utilities(&utilities, batch, transitions)?;
    let edges =
        transitions.iter().zip(&known).map(|(it, own)| coordinated_pairs(&it.observation, own, coordination));
    let chosen = ChosenActions {
        actions: transitions.iter().map(|it| &it.action).collect(),
        edges: edges.collect(),
        coordination,
    };
    let values = chosen.values(networks, &encoded, &utilities, batch)?;
    let targets = Tensor::from_slice(targets, targets.len(), &Device::Cpu)?.to_dtype(values.dtype())?;
    let q = (values - targets)?.sqr()?.mean_all()?;
    let imitation = TaughtActions::of(batch, transitions, coordination)?
        .map(|taught| taught.margin(&utilities, batch, settings.margin))
        .transpose()?;
    Ok((q, imitation))
}

/// The utilities of each observation, `[V, 1 + K * L]`, without padding of the batch.
fn plain_utilities(
    utilities: &Tensor,
    batch: &ObservationBatch,
    transitions: &[&JointTransition],
) -> Result<Vec<Vec<f32>>> {
    let rows: Vec<Vec<f32>> = utilities
        .detach()
        .to_dtype(PRECISION)?
        .reshape((batch.count * batch.nodes, batch.actions()))?
        .to_vec2()?;
    let of_nodes = |(at, transition): (usize, &&JointTransition)| -> Vec<f32> {
        let shape = transition.observation.shape();
        let rows = &rows[at * batch.nodes..][..shape.nodes];
        rows.iter().flat_map(|row| row[..shape.actions()].iter().copied()).collect()
    };
    Ok(transitions.iter().enumerate().map(of_nodes).collect())
}
