//! An ensemble of networks, and the Gaussian process that is their base model.
//!
//! Every network holds back another fold of the measurements for early stopping. The process provides what
//! the networks do not: whether a set fits, and memory and utilization if no measurement has them.

use std::sync::Arc;

use candle_core::{DType, Result, Tensor};
use cohabit_policy::interference::{
    ColocationEstimate, ColocationSet, ContentionMetrics, Interference, MeasuredSet, UNKNOWN_UNCERTAINTY,
};

use super::batch::{NetworkInput, SetBatch};
use super::feature_encoder::FeatureEncoder;
use super::inference::RowBatch;
use super::metric_importance::fit_importance;
use super::network::{BaseModel, Network};
use super::row_network::{MemberOutput, RowNetwork};
use super::single_thread::predict_single_threaded;
use super::training::TrainedNetwork;
use crate::interference::log_slowdown::{others, ran};
use crate::interference::memory_fit::fits_filled;
use crate::interference::model::Weights;
use crate::networks::PRECISION;

/// Trained networks of one kind with their base model.
#[derive(Debug)]
pub(super) struct Ensemble<N> {
    pub(super) networks: Arc<Vec<TrainedNetwork<N>>>,
    pub(super) encoder: FeatureEncoder,
    /// Width of the layers.
    pub(super) width: usize,
    pub(super) held_out_error: HeldOutError,
    /// Importance of each metric that the networks complete.
    pub(super) metric_importance: Vec<f64>,
    pub(super) base: Arc<dyn Interference>,
    /// The weights of the base model as it was trained.
    pub(super) base_weights: Weights,
}

/// Root mean square errors of the logarithm of the slowdown on held-back sets.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) struct HeldOutError {
    pub(super) error: f64,
    /// The error in multiples of the uncertainty of the base model.
    #[serde(rename = "by_base")]
    pub(super) relative_to_base: f64,
    /// Of the logarithm of the memory; `None` if the networks do not predict it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) memory: Option<f64>,
}

/// The largest number of sets in a batch.
const MAX_BATCH: usize = 512;

/// The prediction of the ensemble for a member.
#[derive(Debug, Clone)]
pub(super) struct EnsembleOutput {
    /// The mean over the networks.
    pub(super) mean: MemberOutput,
    /// Variance of the logarithm of the slowdown between the networks.
    pub(super) variance: f64,
}

/// The predictions for each member of each set.
pub(super) fn answers<N: Network>(
    networks: &[TrainedNetwork<N>],
    encoder: &FeatureEncoder,
    questions: &[NetworkInput<'_>],
) -> Result<Vec<Vec<EnsembleOutput>>> {
    let mut predicted = Vec::with_capacity(questions.len());
    for part in questions.chunks(MAX_BATCH) {
        let all = predict_rows(networks, encoder, part)?;
        let mut rows = 0..;
        let mut next = || {
            let row = rows.next().unwrap_or_default();
            EnsembleOutput::of(all.iter().map(|predicted| &predicted[row]))
        };
        predicted.extend(part.iter().map(|question| question.set.members.iter().map(|_| next()).collect()));
    }
    Ok(predicted)
}

/// For each network the outputs for each member of each set, in order.
fn predict_rows<N: Network>(
    networks: &[TrainedNetwork<N>],
    encoder: &FeatureEncoder,
    questions: &[NetworkInput<'_>],
) -> Result<Vec<Vec<MemberOutput>>> {
    let in_rust: Option<Vec<&dyn RowNetwork>> = networks.iter().map(|it| it.rows.as_deref()).collect();
    if let Some(networks) = in_rust {
        let batch = RowBatch::of(encoder, questions, N::EDGES);
        return Ok(networks.iter().map(|network| network.predict(&batch)).collect());
    }
    let batch = SetBatch::of(encoder, questions, N::EDGES, PRECISION)?;
    networks.iter().map(|network| network.predict(&batch, questions)).collect()
}

impl EnsembleOutput {
    /// Combines the outputs of the networks for one member.
    fn of<'a>(outputs: impl ExactSizeIterator<Item = &'a MemberOutput> + Clone) -> EnsembleOutput {
        let count = outputs.len().max(1) as f64;
        let mean = outputs.clone().map(|it| it.ln_slowdown).sum::<f64>() / count;
        let variance = outputs.clone().map(|it| (it.ln_slowdown - mean).powi(2)).sum::<f64>() / count;
        let width = outputs.clone().map(|it| it.usage.len()).max().unwrap_or(0);
        let usage = (0..width).map(|at| outputs.clone().map(|it| it.usage[at]).sum::<f64>() / count);
        EnsembleOutput { mean: MemberOutput { ln_slowdown: mean, usage: usage.collect() }, variance }
    }
}

impl<N: Network> Ensemble<N> {
    /// The estimate of the base model with what the networks predict.
    fn refined(
        &self,
        set: &ColocationSet,
        place: usize,
        base: ColocationEstimate,
        predicted: &EnsembleOutput,
    ) -> ColocationEstimate {
        let usual = match N::BASE_MODEL {
            BaseModel::Nothing => self.held_out_error.error,
            BaseModel::Process => base.uncertainty * self.held_out_error.relative_to_base,
        };
        let uncertainty = usual.max(predicted.variance.sqrt()).min(UNKNOWN_UNCERTAINTY);
        let slowed =
            ColocationEstimate::slowed(&set.members[place], predicted.mean.ln_slowdown.exp(), uncertainty);
        let utilization = base.utilization.map(|busy| (busy * base.slowdown / slowed.slowdown).min(1.0));
        let scaled = ColocationEstimate { memory: base.memory, utilization, fits: base.fits, ..slowed };
        self.encoder.usage.apply(&base, &predicted.mean.usage, scaled)
    }

    /// The estimates with the probability that the set fits by the predicted memory, if the networks learned
    /// it. The memory counts as larger by the usual error, because a set that does not fit costs more.
    fn with_fit(&self, set: &ColocationSet, mut members: Vec<ColocationEstimate>) -> Vec<ColocationEstimate> {
        let capacity = set.gpu.memory().map(|capacity| capacity.0 as f64);
        let held: Option<f64> = members.iter().map(|member| member.memory).sum();
        if let (Some(error), Some(held), Some(capacity)) = (self.held_out_error.memory, held, capacity) {
            let fits = fits_filled(held * error.exp() / capacity);
            members.iter_mut().for_each(|member| member.fits = fits);
        }
        members
    }
}

impl<N: Network> Interference for Ensemble<N> {
    fn predict(&self, sets: &[ColocationSet]) -> Vec<Vec<ColocationEstimate>> {
        let base = self.base.predict(sets);
        let together = sets.iter().zip(&base).filter(|(set, _)| set.members.len() > 1);
        let question = |(set, base): (_, &Vec<ColocationEstimate>)| NetworkInput { set, base: base.clone() };
        let questions: Vec<NetworkInput<'_>> = together.map(question).collect();
        // Layers that fitted together in training do so here, and no caller could act on an error.
        let ask = || answers(&self.networks, &self.encoder, &questions);
        let answered = match self.networks.iter().all(|network| network.rows.is_some()) {
            true => ask(),
            false => predict_single_threaded(ask),
        };
        let Ok(answers) = answered else { return base };
        let mut answers = answers.into_iter();
        let of_set = |(set, base): (&ColocationSet, Vec<ColocationEstimate>)| {
            if set.members.len() < 2 {
                return base;
            }
            let predicted = base.into_iter().zip(answers.next().unwrap_or_default()).enumerate();
            let refined =
                predicted.map(|(place, (base, predicted))| self.refined(set, place, base, &predicted));
            self.with_fit(set, refined.collect())
        };
        sets.iter().zip(base).map(of_set).collect()
    }

    /// The means over the networks, weighted so that the load of two jobs adds up as their slowdowns do.
    fn contention(&self, sets: &[ColocationSet]) -> Option<Vec<Vec<ContentionMetrics>>> {
        let mut completed = completed(&self.networks, &self.encoder, sets)?;
        for ContentionMetrics(metrics) in completed.iter_mut().flatten() {
            metrics
                .iter_mut()
                .zip(&self.metric_importance)
                .for_each(|(metric, weight)| *metric *= weight.sqrt());
        }
        Some(completed)
    }
}

/// The completed metrics of all members: means over the networks. `None` for networks that do not use
/// metrics.
fn completed<N: Network>(
    networks: &[TrainedNetwork<N>],
    encoder: &FeatureEncoder,
    sets: &[ColocationSet],
) -> Option<Vec<Vec<ContentionMetrics>>> {
    let question = |set| NetworkInput { set, base: Vec::new() };
    let questions: Vec<NetworkInput<'_>> = sets.iter().map(question).collect();
    let batch = SetBatch::of(encoder, &questions, N::EDGES, PRECISION).ok()?;
    let mut sum: Option<Tensor> = None;
    for trained in networks {
        let contention = trained.network.contention(&batch).ok()??.detach();
        sum = Some(match sum {
            Some(sum) => (sum + contention).ok()?,
            None => contention,
        });
    }
    let mean = (sum? / networks.len() as f64).ok()?.to_dtype(DType::F64).ok()?.to_vec2().ok()?;
    let of_set = |(set, rows): (&ColocationSet, &[Vec<f64>])| {
        rows.iter().take(set.members.len()).cloned().map(ContentionMetrics).collect()
    };
    Some(sets.iter().zip(mean.chunks(batch.count)).map(of_set).collect())
}

/// The importance of each metric in these measurements; empty for networks that do not use metrics.
pub(super) fn metric_importance<N: Network>(
    networks: &[TrainedNetwork<N>],
    encoder: &FeatureEncoder,
    measured: &[MeasuredSet],
) -> Vec<f64> {
    let sets: Vec<ColocationSet> = measured.iter().map(|it| it.set.clone()).collect();
    let Some(completed) = completed(networks, encoder, &sets) else { return Vec::new() };
    let mut rows = Vec::new();
    for (members, measured) in completed.iter().zip(measured) {
        for (_, place, observed) in ran(std::slice::from_ref(measured)) {
            let contended = |metric: usize| {
                let partners: f64 = others(members, place).map(|partner| partner.0[metric]).sum();
                members[place].0[metric] * partners
            };
            rows.push(((0..encoder.metrics()).map(contended).collect(), observed.slowdown.max(1.0).ln()));
        }
    }
    fit_importance(&rows, encoder.metrics())
}

/// Clones share the networks.
impl<N> Clone for Ensemble<N> {
    fn clone(&self) -> Ensemble<N> {
        Ensemble {
            networks: Arc::clone(&self.networks),
            encoder: self.encoder.clone(),
            width: self.width,
            held_out_error: self.held_out_error,
            metric_importance: self.metric_importance.clone(),
            base: Arc::clone(&self.base),
            base_weights: self.base_weights.clone(),
        }
    }
}
