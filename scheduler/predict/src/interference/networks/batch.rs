//! Sets as tensors, padded to the size of the largest, with masks of the present members.

use candle_core::{DType, Device, Result, Tensor};
use cohabit_policy::interference::{
    ColocationEstimate, ColocationSet, Configuration, MeasuredSet, SetMember, SetOutcome,
};
use rand_chacha::ChaCha8Rng;

use super::feature_encoder::{EmbeddingIndices, FeatureEncoder};
use super::iasp::Metrics;
use super::usage_targets::UsageTargets;
use crate::random::RandomExt;

/// A batch of sets of two or more. Members are rows, set by set, `count` rows for each set.
#[derive(Debug)]
pub(super) struct SetBatch {
    pub(super) sets: usize,
    /// Members of a set, padding included.
    pub(super) count: usize,
    /// `[sets * count, numbers]`.
    pub(super) numbers: Tensor,
    /// The metrics of jobs alone.
    pub(super) metrics: Metrics,
    /// For each row; 0 for padding.
    pub(super) identities: Vec<EmbeddingIndices>,
    /// 1 for a member, 0 for padding, `[sets * count, 1]`.
    pub(super) present: Tensor,
    /// 1 for two different members of a set, `[sets, count, count]`.
    pub(super) partner_mask: Tensor,
    /// The slowdown of the first member beside the second by the pair table; 1 if unknown,
    /// `[sets, count, count]`.
    pub(super) edges: Tensor,
    /// 1 if the edge was measured, `[sets, count, count]`.
    pub(super) edges_known: Tensor,
    /// Steps per second alone, 0 if unknown, `[sets * count, 1]`.
    pub(super) rates: Tensor,
    /// Logarithm of the slowdown predicted by the base model, `[sets * count, 1]`.
    pub(super) base: Tensor,
    /// Uncertainty of the base model, `[sets * count, 1]`.
    pub(super) base_uncertainty: Tensor,
}

/// The input for one set.
#[derive(Debug, Clone)]
pub(super) struct NetworkInput<'a> {
    pub(super) set: &'a ColocationSet,
    /// The predictions of the base model for the members.
    pub(super) base: Vec<ColocationEstimate>,
}

/// The measured values of the rows of a batch.
#[derive(Debug)]
pub(super) struct Targets {
    /// Logarithm of the slowdown, `[sets * count, 1]`.
    pub(super) ln_slowdown: Tensor,
    /// The weight of each row; the sum is 1, `[sets * count, 1]`.
    pub(super) weights: Tensor,
    /// What the members use, for networks that predict it.
    pub(super) usage: Option<UsageTargets>,
}

/// Which edges a network gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edges {
    /// As in the published release: the pair table, or the same models with other batch sizes, for pairs too.
    AsReleased,
    /// Only in sets of three and more, if the pair was measured: the edge of a pair would be its own answer.
    OfLargerSets,
}

/// Probabilities of hiding the identity of a job during training, so that the network can handle unseen jobs.
const HIDDEN_CONFIGURATION: f64 = 0.2;
const HIDDEN_MODEL: f64 = 0.1;

impl SetBatch {
    /// Encodes sets; networks of the given kind get these edges.
    pub(super) fn of(
        encoder: &FeatureEncoder,
        inputs_of_sets: &[NetworkInput<'_>],
        edges_shown: Edges,
        precision: DType,
    ) -> Result<SetBatch> {
        let count = inputs_of_sets.iter().map(|it| it.set.members.len()).max().unwrap_or(0).max(1);
        let width = encoder.width();
        let rows = inputs_of_sets.len() * count;
        let mut numbers = vec![0.0; rows * width];
        let (mut present, mut rates) = (vec![0.0; rows], vec![0.0; rows]);
        let mut identities = vec![EmbeddingIndices::default(); rows];
        let mut partner_mask = vec![0.0; rows * count];
        let (mut edges, mut edges_known) = (vec![1.0; rows * count], vec![0.0; rows * count]);
        let metrics = encoder.metrics();
        let (mut values, mut observed) = (vec![0.0; rows * metrics], vec![0.0; rows * metrics]);
        let (mut base, mut base_uncertainty) = (vec![0.0; rows], vec![0.0; rows]);
        for (at, NetworkInput { set, base: predicted }) in inputs_of_sets.iter().enumerate() {
            let members = encoder.numbers(set).into_iter().zip(encoder.identities(set)).zip(&set.members);
            let observed_metrics = encoder.observed(set);
            let shown = edges_of(encoder, set, edges_shown);
            for (place, ((inputs, identity), member)) in members.enumerate() {
                let row = at * count + place;
                numbers[row * width..(row + 1) * width].copy_from_slice(&inputs);
                identities[row] = identity;
                for (column, value) in observed_metrics[place].iter().enumerate() {
                    if let Some(value) = value {
                        values[row * metrics + column] = value.clamp(0.0, 1.0);
                        observed[row * metrics + column] = 1.0;
                    }
                }
                if let Some(predicted) = predicted.get(place) {
                    (base[row], base_uncertainty[row]) = (predicted.slowdown.ln(), predicted.uncertainty);
                }
                present[row] = 1.0;
                rates[row] = member.solo.rate.unwrap_or(0.0);
                for other in (0..set.members.len()).filter(|other| *other != place) {
                    partner_mask[row * count + other] = 1.0;
                    if let Some(slowdown) = shown[place * set.members.len() + other] {
                        edges[row * count + other] = slowdown;
                        edges_known[row * count + other] = 1.0;
                    }
                }
            }
        }
        let tensor = |values: Vec<f64>, shape: &[usize]| {
            Tensor::from_vec(values, shape, &Device::Cpu)?.to_dtype(precision)
        };
        let square = [inputs_of_sets.len(), count, count];
        Ok(SetBatch {
            sets: inputs_of_sets.len(),
            count,
            numbers: tensor(numbers, &[rows, width])?,
            metrics: Metrics {
                values: tensor(values, &[rows, metrics])?,
                observed: tensor(observed, &[rows, metrics])?,
            },
            identities,
            present: tensor(present, &[rows, 1])?,
            partner_mask: tensor(partner_mask, &square)?,
            edges: tensor(edges, &square)?,
            edges_known: tensor(edges_known, &square)?,
            rates: tensor(rates, &[rows, 1])?,
            base: tensor(base, &[rows, 1])?,
            base_uncertainty: tensor(base_uncertainty, &[rows, 1])?,
        })
    }

    /// The identities of all rows as indices of embeddings; during training, some are hidden at random.
    pub(super) fn shown(&self, random: Option<&mut ChaCha8Rng>) -> Result<[Tensor; 3]> {
        let mut shown = self.identities.clone();
        if let Some(random) = random {
            for identity in &mut shown {
                let drawn = random.part();
                if drawn < HIDDEN_MODEL {
                    *identity = EmbeddingIndices { gpu: identity.gpu, ..EmbeddingIndices::default() };
                } else if drawn < HIDDEN_MODEL + HIDDEN_CONFIGURATION {
                    identity.configuration = 0;
                }
            }
        }
        let places = |of: fn(&EmbeddingIndices) -> u32| {
            let places: Vec<u32> = shown.iter().map(of).collect();
            Tensor::from_vec(places, shown.len(), &Device::Cpu)
        };
        Ok([places(|it| it.configuration)?, places(|it| it.model)?, places(|it| it.gpu)?])
    }
}

/// The edges that a network of this kind gets: the slowdown of each member beside each other one where it is
/// known, member by member.
pub(super) fn edges_of(encoder: &FeatureEncoder, set: &ColocationSet, shown: Edges) -> Vec<Option<f64>> {
    let known: Vec<Configuration> = set.members.iter().map(SetMember::configuration).collect();
    let edge = |own: usize, other: usize| match shown {
        _ if own == other => None,
        Edges::AsReleased => encoder.pairs.measured_or_similar(&set.gpu, &known[own], &known[other]),
        Edges::OfLargerSets if known.len() > 2 => {
            encoder.pairs.measured(&set.gpu, &known[own], &known[other])
        }
        Edges::OfLargerSets => None,
    };
    (0..known.len())
        .flat_map(|own| (0..known.len()).map(move |other| (own, other)))
        .map(|(own, other)| edge(own, other))
        .collect()
}

impl Targets {
    /// Slowdowns of sets that ran. Each member is weighted by the inverse of its slowdown, because relative
    /// errors matter and overestimates have larger ones.
    pub(super) fn of(measured: &[&MeasuredSet], count: usize, precision: DType) -> Result<Targets> {
        let rows = measured.len() * count;
        let (mut ln_slowdown, mut weights) = (vec![0.0; rows], vec![0.0; rows]);
        for (at, it) in measured.iter().enumerate() {
            let SetOutcome::Ran(observed) = &it.outcome else { continue };
            for (place, observed) in observed.iter().take(it.set.members.len()).enumerate() {
                let slowdown = observed.slowdown.max(1.0);
                ln_slowdown[at * count + place] = slowdown.ln();
                weights[at * count + place] = 1.0 / slowdown;
            }
        }
        let all = weights.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        weights.iter_mut().for_each(|weight| *weight /= all);
        let tensor = |values| Tensor::from_vec(values, (rows, 1), &Device::Cpu)?.to_dtype(precision);
        Ok(Targets { ln_slowdown: tensor(ln_slowdown)?, weights: tensor(weights)?, usage: None })
    }
}
