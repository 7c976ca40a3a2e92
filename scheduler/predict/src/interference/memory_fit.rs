//! Whether a set fits into a GPU's memory: by measured memory where it is known, else by which sets did.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_policy::interference::{ColocationSet, MeasuredSet, SetMember, SetOutcome};
use serde::{Deserialize, Serialize};

use super::cholesky::Cholesky;

/// What is known of the room that jobs take.
///
/// A set does not fit when what its members take exceeds what the GPU has. Both are learned from which sets
/// fitted, as weights of traits of members and of the GPU.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct MemoryFitModel {
    weights: BTreeMap<String, f64>,
}

/// Co-located memory is the sum of that alone; what exceeds this part of the GPU's memory hardly fits.
const FULL_MEMORY_PART: f64 = 0.97;
/// From certainly fitting to certainly not fitting takes some of these steps, as parts of the GPU's memory.
const STEP: f64 = 0.01;
/// To start what does not fit costs more than to leave alone what would.
const WEIGHT_OF_MISFITS: f64 = 150.0;
/// How far traits are believed to lie from 0.
const VARIANCE: f64 = 9.0;
const ROUNDS: usize = 25;

impl MemoryFitModel {
    /// Learns from sets that fitted and sets that did not; from nothing but one of these nothing is learned.
    pub(crate) fn learn(measured: &[MeasuredSet]) -> MemoryFitModel {
        let together: Vec<&MeasuredSet> = measured.iter().filter(|it| it.set.members.len() > 1).collect();
        let misfit = |it: &&&MeasuredSet| it.outcome == SetOutcome::DidNotFit;
        let misfits = together.iter().filter(misfit).count();
        if misfits == 0 || misfits == together.len() {
            return MemoryFitModel::default();
        }
        let rows: Vec<_> = together.iter().map(|it| (traits(&it.set), misfit(&it))).collect();
        let names: BTreeSet<&String> = rows.iter().flat_map(|(traits, _)| traits.keys()).collect();
        let names: BTreeMap<&String, usize> =
            names.into_iter().enumerate().map(|(place, name)| (name, place)).collect();
        let sparse = |(traits, misfit): &(BTreeMap<String, f64>, bool)| {
            (traits.iter().map(|(name, value)| (names[name], *value)).collect(), *misfit)
        };
        let rows: Vec<FitExample> = rows.iter().map(sparse).collect();
        let weights = logistic(&rows, names.len());
        MemoryFitModel {
            weights: names.into_iter().map(|(name, place)| (name.clone(), weights[place])).collect(),
        }
    }

    /// How likely a set fits, 0 to 1.
    pub(crate) fn fits(&self, set: &ColocationSet) -> f64 {
        if set.members.len() < 2 {
            return 1.0;
        }
        if let Some(filled) = set.memory_filled() {
            return 1.0 - sigmoid((filled - FULL_MEMORY_PART) / STEP);
        }
        if self.weights.is_empty() {
            return 1.0;
        }
        let known = traits(set).into_iter();
        1.0 - sigmoid(known.map(|(name, value)| self.weights.get(&name).unwrap_or(&0.0) * value).sum())
    }
}

/// The traits of a set: those of its members, added up, and the GPU. What a job takes is about the same on
/// all GPUs with as much memory.
fn traits(set: &ColocationSet) -> BTreeMap<String, f64> {
    let gpu = set.gpu.name();
    let memory = set.gpu.memory().map_or_else(|| gpu.to_owned(), |memory| memory.to_string());
    let mut traits = BTreeMap::from([(format!("gpu {gpu}"), 1.0)]);
    let mut add = |name: String, value: f64| *traits.entry(name).or_insert(0.0) += value;
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
    traits
}

type FitExample = (Vec<(usize, f64)>, bool);

/// Logistic regression by Newton's method.
fn logistic(rows: &[FitExample], width: usize) -> Vec<f64> {
    let mut weights = vec![0.0; width];
    for _ in 0..ROUNDS {
        let mut gradient: Vec<f64> = weights.iter().map(|weight| weight / VARIANCE).collect();
        let mut curvature = vec![0.0; width * width];
        for (traits, misfit) in rows {
            let said = sigmoid(traits.iter().map(|(at, value)| weights[*at] * value).sum());
            let (truth, counts) = if *misfit { (1.0, WEIGHT_OF_MISFITS) } else { (0.0, 1.0) };
            for (row, one) in traits {
                gradient[*row] += counts * (said - truth) * one;
                for (column, other) in traits {
                    curvature[row * width + column] += counts * said * (1.0 - said) * one * other;
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
