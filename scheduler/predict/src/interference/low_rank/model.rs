//! The model for sets of any size: pairs by effects, larger sets by their pairs.

use std::collections::BTreeMap;

use candle_core::{DType, Device, Tensor};
use cohabit_policy::interference::{
    ColocationEstimate, ColocationSet, Interference, MeasuredMember, MeasuredSet, SetMember,
};
use serde::{Deserialize, Serialize};

use super::covariates::{CovariateIndex, EncodedJob, NOISE, covariates_of};
use super::effects::Effects;
use super::factors::{PairObservation, fit};
use crate::interference::calibration::Calibration;
use crate::interference::gaussian::CorrectedModel;
use crate::interference::law_prior;
use crate::interference::log_slowdown::{Censoring, LogSlowdown, others, ran};
use crate::interference::memory_fit::MemoryFitModel;
use crate::interference::model::{Model, RestoreError, TrainError, Weights};
use crate::interference::slowdown_scale::SlowdownScale;
use crate::interference::usage_model::UsageModel;

/// The trained model.
#[derive(Debug, Clone)]
pub(super) struct LowRank {
    effects: Effects,
    metadata: ModelMetadata,
}

/// The part of the model that is not tensors.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct ModelMetadata {
    #[serde(rename = "traits")]
    covariates: CovariateIndex,
    mean: f64,
    /// The scale of the effects; models of earlier releases add up logarithms of slowdowns.
    #[serde(default)]
    scale: SlowdownScale,
    #[serde(rename = "room")]
    memory_fit: MemoryFitModel,
    usage: UsageModel,
    calibration: Calibration,
    /// By the number of members, for sets of three and more.
    #[serde(rename = "larger", default)]
    larger_sets: BTreeMap<usize, LargerSetError>,
}

/// The error of the combination of pairs for a larger set.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct LargerSetError {
    /// Mean error of the logarithm of the slowdown.
    mean: f64,
    variance: f64,
}

/// Offsets from 0.3 to 0.8 differ by less than a thousandth in the error on held-out sets.
const SCALE: SlowdownScale = SlowdownScale::with_offset(0.5);

/// The error for set sizes that were not measured: combined pairs deviate from the law by 10% for three
/// members.
const UNSEEN_LARGER_SET: LargerSetError = LargerSetError { mean: 0.0, variance: 0.02 };

impl LargerSetError {
    fn of(errors: &[f64]) -> LargerSetError {
        let count = errors.len().max(1) as f64;
        let mean = errors.iter().sum::<f64>() / count;
        LargerSetError {
            mean,
            variance: errors.iter().map(|error| (error - mean).powi(2)).sum::<f64>() / count,
        }
    }
}

impl LowRank {
    /// Fits the effects, and the models of memory and utilization.
    pub(super) fn learn(
        measured: &[MeasuredSet],
        seed: u64,
        calibration: Calibration,
    ) -> Result<LowRank, TrainError> {
        let pairs: Vec<_> = ran(measured).filter(|(set, ..)| set.members.len() == 2).collect();
        if pairs.is_empty() {
            return Err(TrainError::NoPairs);
        }
        let mut covariates = CovariateIndex::default();
        let job = |set: &ColocationSet, member: usize| covariates_of(&set.members[member], &set.gpu);
        pairs.iter().for_each(|(set, member, _)| covariates.note(&job(set, *member)));
        let row = |(set, member, observed): &(&ColocationSet, usize, &MeasuredMember)| PairObservation {
            own: covariates.job(&job(set, *member)),
            partner: covariates.job(&job(set, 1 - *member)),
            value: SCALE.value(observed.slowdown.max(1.0)),
            censoring: Censoring::of(observed),
        };
        let rows: Vec<PairObservation> = pairs.iter().map(row).collect();
        let effects = fit(&rows, &covariates.variances, seed);
        let (memory_fit, usage) = (MemoryFitModel::learn(measured), UsageModel::learn(measured));
        let larger_sets = BTreeMap::new();
        let (mean, scale) = (effects.mean, SCALE);
        let metadata = ModelMetadata { covariates, mean, scale, memory_fit, usage, calibration, larger_sets };
        let mut model = LowRank { effects, metadata };
        model.metadata.larger_sets = model.larger_set_errors(measured);
        Ok(model)
    }

    fn larger_set_errors(&self, measured: &[MeasuredSet]) -> BTreeMap<usize, LargerSetError> {
        let mut errors: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for (set, member, observed) in ran(measured).filter(|(set, ..)| set.members.len() > 2) {
            let error = observed.slowdown.max(1.0).ln() - self.combine_pairs(set)[member].mean;
            errors.entry(set.members.len()).or_default().push(error);
        }
        errors.into_iter().map(|(members, errors)| (members, LargerSetError::of(&errors))).collect()
    }

    /// Mean absolute error of the logarithm of the slowdowns.
    pub(super) fn loss(&self, measured: &[MeasuredSet]) -> f64 {
        let error = |(set, member, observed): (&ColocationSet, usize, &MeasuredMember)| {
            (self.predict_members(set)[member].mean.max(0.0) - observed.slowdown.max(1.0).ln()).abs()
        };
        let errors: Vec<f64> = ran(measured).map(error).collect();
        errors.iter().sum::<f64>() / errors.len().max(1) as f64
    }

    fn predict_set(&self, set: &ColocationSet) -> Vec<ColocationEstimate> {
        if let [member] = &set.members[..] {
            return vec![ColocationEstimate::alone(member)];
        }
        let fits = self.metadata.memory_fit.fits(set);
        let law = law_prior::predict_by_law(set);
        let member = |(place, expected): (usize, LogSlowdown)| {
            let learned = self.metadata.calibration.rescale(&set.gpu, expected.with_caution());
            let combined = law.as_ref().map_or(learned, |law| learned.combine(law[place]));
            let slowed = combined.answer(&set.members[place]);
            ColocationEstimate { fits, ..self.metadata.usage.complete(set, place, slowed) }
        };
        self.predict_members(set).into_iter().enumerate().map(member).collect()
    }

    /// The prediction for each member.
    fn predict_members(&self, set: &ColocationSet) -> Vec<LogSlowdown> {
        let of_pairs = self.combine_pairs(set);
        if set.members.len() < 3 {
            return of_pairs;
        }
        let LargerSetError { mean, variance } =
            self.metadata.larger_sets.get(&set.members.len()).copied().unwrap_or(UNSEEN_LARGER_SET);
        let more = |it: LogSlowdown| LogSlowdown { mean: it.mean + mean, variance: it.variance + variance };
        of_pairs.into_iter().map(more).collect()
    }

    /// The prediction for each member from its pairs.
    fn combine_pairs(&self, set: &ColocationSet) -> Vec<LogSlowdown> {
        let job = |member: &SetMember| self.metadata.covariates.job(&covariates_of(member, &set.gpu));
        let jobs: Vec<EncodedJob> = set.members.iter().map(job).collect();
        let member = |place: usize| {
            let partners = others(&jobs, place);
            LogSlowdown::of_pairs(partners.map(|partner| self.pair(&jobs[place], partner)))
        };
        (0..jobs.len()).map(member).collect()
    }

    fn pair(&self, own: &EncodedJob, partner: &EncodedJob) -> LogSlowdown {
        let variance = NOISE + own.open + partner.open;
        self.metadata.scale.ln_slowdown(self.effects.value(own, partner), variance)
    }
}

impl Interference for LowRank {
    fn predict(&self, sets: &[ColocationSet]) -> Vec<Vec<ColocationEstimate>> {
        sets.iter().map(|set| self.predict_set(set)).collect()
    }
}

impl Model for LowRank {
    fn weights(&self) -> Weights {
        let Effects { sensitivity, pressure, own, partners, .. } = &self.effects;
        let named = [(SENSITIVITY, vec![sensitivity]), (PRESSURE, vec![pressure])];
        let factors = [(OWN, own.iter().collect()), (PARTNERS, partners.iter().collect::<Vec<_>>())];
        let rows = |(name, rows): (&str, Vec<&Vec<f64>>)| {
            let count = rows.len();
            let all: Vec<f32> = rows.into_iter().flatten().map(|number| *number as f32).collect();
            let width = all.len() / count.max(1);
            Some((name.to_owned(), Tensor::from_vec(all, (count, width), &Device::Cpu).ok()?))
        };
        let tensors = named.into_iter().chain(factors).filter_map(rows).collect();
        Weights { tensors, metadata: serde_json::to_value(&self.metadata).unwrap_or_default() }
    }

    fn features(&self) -> Vec<String> {
        ["model", "batch", "precision", "family", "gpu", "own_utilisation"].map(str::to_owned).into()
    }

    /// A Gaussian process learns the errors of this model.
    fn adapted(&self, observed: &[MeasuredSet]) -> Box<dyn Interference> {
        Box::new(CorrectedModel::of(Box::new(self.clone()), observed))
    }
}

const SENSITIVITY: &str = "sensitivity";
const PRESSURE: &str = "pressure";
const OWN: &str = "factors";
const PARTNERS: &str = "factors_of_partners";

impl LowRank {
    pub(super) fn restored(weights: &Weights) -> Result<LowRank, RestoreError> {
        let metadata: ModelMetadata = serde_json::from_value(weights.metadata.clone())?;
        let rows = |name: &str| -> Result<Vec<Vec<f64>>, RestoreError> {
            let lacking = || RestoreError::MissingTensor(name.to_owned());
            let rows = weights.tensors.get(name).ok_or_else(lacking)?.to_dtype(DType::F64)?.to_vec2()?;
            let whole = rows.iter().all(|row: &Vec<f64>| row.len() == metadata.covariates.count());
            if whole { Ok(rows) } else { Err(lacking()) }
        };
        let only = |name: &str| -> Result<Vec<f64>, RestoreError> {
            rows(name)?.into_iter().next().ok_or_else(|| RestoreError::MissingTensor(name.to_owned()))
        };
        let effects = Effects {
            mean: metadata.mean,
            sensitivity: only(SENSITIVITY)?,
            pressure: only(PRESSURE)?,
            own: rows(OWN)?,
            partners: rows(PARTNERS)?,
        };
        let covariates = metadata
            .covariates
            .with_places()
            .ok_or_else(|| RestoreError::MissingTensor("seen".to_owned()))?;
        Ok(LowRank { effects, metadata: ModelMetadata { covariates, ..metadata } })
    }
}
