//! Stores ensembles as weights and restores them.

use std::collections::BTreeMap;
use std::sync::Arc;

use candle_core::Tensor;
use cohabit_policy::interference::{Interference, MeasuredSet};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ensemble::{Ensemble, HeldOutError};
use super::feature_encoder::FeatureEncoder;
use super::network::{BaseModel, Network};
use super::training::TrainedNetwork;
use crate::interference::gaussian::{CorrectedModel, GAUSSIAN_KIND};
use crate::interference::model::{Model, ModelKind, RestoreError, Weights};
use crate::interference::usage_source::UsageSources;
use crate::networks::{PRECISION, Parameters};

/// The part of the weights that is not tensors.
#[derive(Debug, Serialize, Deserialize)]
struct ModelMetadata {
    networks: usize,
    width: usize,
    #[serde(rename = "look")]
    encoder: FeatureEncoder,
    #[serde(rename = "honesty")]
    held_out_error: HeldOutError,
    #[serde(rename = "worth")]
    metric_importance: Vec<f64>,
    base: Value,
}

/// The prefix of the names of the base model's tensors.
const BASE: &str = "base.";

impl<N: Network> Model for Ensemble<N> {
    fn weights(&self) -> Weights {
        weights(self)
    }

    fn features(&self) -> Vec<String> {
        let names = ["model", "batch", "precision", "gpu", "measured pairs"].map(str::to_owned);
        names.into_iter().chain(self.encoder.names()).collect()
    }

    fn usage_sources(&self) -> UsageSources {
        match N::BASE_MODEL {
            BaseModel::Process => self.encoder.usage.sources(),
            BaseModel::Nothing => UsageSources::default(),
        }
    }

    /// The networks stay as they are. A base model learns the observations; networks without one are
    /// corrected.
    fn adapted(&self, observed: &[MeasuredSet]) -> Box<dyn Interference> {
        let Ok(base) = base(&self.base_weights) else { return Box::new(self.clone()) };
        let mut encoder = self.encoder.clone();
        encoder.pairs.learn(observed);
        let adapted = Ensemble { base: Arc::from(base.adapted(observed)), encoder, ..self.clone() };
        match N::BASE_MODEL {
            BaseModel::Process => Box::new(adapted),
            BaseModel::Nothing => Box::new(CorrectedModel::of(Box::new(adapted), observed)),
        }
    }
}

fn weights<N: Network>(ensemble: &Ensemble<N>) -> Weights {
    let Weights { tensors, metadata: base } = ensemble.base_weights.clone();
    let mut tensors: BTreeMap<String, Tensor> =
        tensors.into_iter().map(|(name, tensor)| (format!("{BASE}{name}"), tensor)).collect();
    for (at, trained) in ensemble.networks.iter().enumerate() {
        let named =
            |(name, variable): (&str, &candle_core::Var)| (prefix(at) + name, variable.as_detached_tensor());
        tensors.extend(trained.parameters.iter().map(named));
    }
    let metadata = ModelMetadata {
        networks: ensemble.networks.len(),
        width: ensemble.width,
        encoder: ensemble.encoder.clone(),
        held_out_error: ensemble.held_out_error,
        metric_importance: ensemble.metric_importance.clone(),
        base,
    };
    Weights { tensors, metadata: serde_json::to_value(metadata).unwrap_or_default() }
}

pub(super) fn restored<N: Network>(weights: &Weights) -> Result<Ensemble<N>, RestoreError> {
    let metadata: ModelMetadata = serde_json::from_value(weights.metadata.clone())?;
    let network = |at: usize| -> Result<TrainedNetwork<N>, RestoreError> {
        let mut parameters = Parameters::stored(beginning(weights, &prefix(at)), PRECISION);
        let network = N::new(&mut parameters, &metadata.encoder, metadata.width)?;
        let rows = N::rows(&parameters, &metadata.encoder, metadata.width)?;
        Ok(TrainedNetwork { network, parameters, rows })
    };
    let networks = (0..metadata.networks).map(network).collect::<Result<_, _>>()?;
    let base_weights = Weights { tensors: beginning(weights, BASE), metadata: metadata.base };
    let base: Box<dyn Interference> = base(&base_weights)?;
    Ok(Ensemble {
        networks: Arc::new(networks),
        encoder: metadata.encoder,
        width: metadata.width,
        held_out_error: metadata.held_out_error,
        metric_importance: metadata.metric_importance,
        base: Arc::from(base),
        base_weights,
    })
}

/// Restores the base model from its weights.
fn base(weights: &Weights) -> Result<Box<dyn Model>, RestoreError> {
    GAUSSIAN_KIND.restore(weights)
}

/// The tensors whose names have this prefix, without it.
fn beginning(weights: &Weights, prefix: &str) -> BTreeMap<String, Tensor> {
    let own =
        |(name, tensor): (&String, &Tensor)| Some((name.strip_prefix(prefix)?.to_owned(), tensor.clone()));
    weights.tensors.iter().filter_map(own).collect()
}

fn prefix(at: usize) -> String {
    format!("network{at}.")
}
