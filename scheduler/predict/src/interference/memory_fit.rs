//! Whether a set fits into the memory of a GPU: from measured memory if it is known, else from which sets
//! fitted.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_policy::interference::{ColocationSet, MeasuredSet, SetMember, SetOutcome};
use serde::{Deserialize, Serialize};

use super::cholesky::Cholesky;

/// Learns the memory that jobs take.
///
/// A set does not fit when its members together take more than the GPU has. Both sides are learned from which
/// sets fitted, as weights of covariates of members and of the GPU.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct MemoryFitModel {
    weights: BTreeMap<String, f64>,
}

/// Co-located jobs take the sum of what they take alone; a set above this fraction of the GPU's memory hardly
/// fits.
const FULL_MEMORY_PART: f64 = 0.97;
/// The width of the transition from fitting to not fitting, as a fraction of the GPU's memory.
const STEP: f64 = 0.01;
/// Starting a set that does not fit costs more than rejecting one that would.
const WEIGHT_OF_MISFITS: f64 = 200.0;
/// The prior variance of the weights.
const VARIANCE: f64 = 9.0;
const ROUNDS: usize = 25;

impl MemoryFitModel {
    /// Learns from sets that fitted and sets that did not; without examples of both, nothing is learned.
    pub(crate) fn learn(measured: &[MeasuredSet]) -> MemoryFitModel {
        let co_located: Vec<&MeasuredSet> = measured.iter().filter(|it| it.set.members.len() > 1).collect();
        let misfit = |it: &&&MeasuredSet| it.outcome == SetOutcome::DidNotFit;
        let misfits = co_located.iter().filter(misfit).count();
        if misfits == 0 || misfits == co_located.len() {
            return MemoryFitModel::default();
        }
        let rows: Vec<_> = co_located.iter().map(|it| (covariates(&it.set), misfit(&it))).collect();
        let names: BTreeSet<&String> = rows.iter().flat_map(|(covariates, _)| covariates.keys()).collect();
        let names: BTreeMap<&String, usize> =
            names.into_iter().enumerate().map(|(place, name)| (name, place)).collect();
        let sparse = |(covariates, misfit): &(BTreeMap<String, f64>, bool)| {
            (covariates.iter().map(|(name, value)| (names[name], *value)).collect(), *misfit)
        };
        let rows: Vec<FitExample> = rows.iter().map(sparse).collect();
        let weights = logistic(&rows, names.len());
        MemoryFitModel {
            weights: names.into_iter().map(|(name, place)| (name.clone(), weights[place])).collect(),
        }
    }

    /// The probability that a set fits, 0 to 1.
    pub(crate) fn fits(&self, set: &ColocationSet) -> f64 {
        if set.members.len() < 2 {
            return 1.0;
        }
        if let Some(filled) = set.memory_filled() {
            return fits_filled(filled);
        }
        if self.weights.is_empty() {
            return 1.0;
        }
        let known = covariates(set).into_iter();
        1.0 - sigmoid(known.map(|(name, value)| self.weights.get(&name).unwrap_or(&0.0) * value).sum())
    }
}

/// The probability that a set fits which fills this part of the GPU's memory.
pub(crate) fn fits_filled(filled: f64) -> f64 {
    1.0 - sigmoid((filled - FULL_MEMORY_PART) / STEP)
}

/// The covariates of a set: the sums over its members, and the GPU. A job takes about the same memory on all
/// GPUs with the same memory size.
fn covariates(set: &ColocationSet) -> BTreeMap<String, f64> {
    let gpu = set.gpu.name();
    let memory = set.gpu.memory().map_or_else(|| gpu.to_owned(), |memory| memory.to_string());
    let mut covariates = BTreeMap::from([(format!("gpu {gpu}"), 1.0)]);
    let mut add = |name: String, value: f64| *covariates.entry(name).or_insert(0.0) += value;
    for member in &set.members {
        let SetMember { model, batch, .. } = member;
        let doublings = batch.map_or(0.0, |batch| (batch.max(1) as f64).log2() / 2.0);
        let configuration = member.configuration();
        add(format!("{configuration} in {memory}"), 0.5);
        add(configuration.to_string(), 1.0);
        add(format!("model {model}"), 1.0);
        add(format!("doublings of {model}"), doublings);
        add("doublings".to_owned(), doublings);
    }
    covariates
}

type FitExample = (Vec<(usize, f64)>, bool);

/// Logistic regression by Newton's method.
fn logistic(rows: &[FitExample], width: usize) -> Vec<f64> {
    let mut weights = vec![0.0; width];
    for _ in 0..ROUNDS {
        let mut gradient: Vec<f64> = weights.iter().map(|weight| weight / VARIANCE).collect();
        let mut curvature = vec![0.0; width * width];
        for (covariates, misfit) in rows {
            let predicted = sigmoid(covariates.iter().map(|(at, value)| weights[*at] * value).sum());
            let (truth, counts) = if *misfit { (1.0, WEIGHT_OF_MISFITS) } else { (0.0, 1.0) };
            for (row, one) in covariates {
                gradient[*row] += counts * (predicted - truth) * one;
                for (column, other) in covariates {
                    curvature[row * width + column] += counts * predicted * (1.0 - predicted) * one * other;
                }
            }
        }
        let value = |row: usize, column: usize| {
            curvature[row * width + column] + if row == column { 1.0 / VARIANCE } else { 0.0 }
        };
        let step = Cholesky::of(width, value).solve(&gradient);
        weights.iter_mut().zip(step).for_each(|(weight, step)| *weight -= step);
    }
    weights
}

fn sigmoid(value: f64) -> f64 {
    1.0 / (1.0 + (-value).exp())
}
