//! The model for sets of any size: one Gaussian process for pairs, another for the residuals of larger sets.

use std::collections::BTreeMap;

use candle_core::{DType, Device, Tensor};
use cohabit_policy::interference::{
    ColocationEstimate, ColocationSet, Interference, MeasuredMember, MeasuredSet, SetMember,
};
use serde::{Deserialize, Serialize};

use super::prior::Prior;
use super::process::{GaussianProcess, GpMetadata, Observations};
use super::questions::{AskedSet, Questions};
use crate::interference::calibration::Calibration;
use crate::interference::log_slowdown::{Censoring, LogSlowdown, ran};
use crate::interference::memory_fit::MemoryFitModel;
use crate::interference::model::{Model, RestoreError, TrainError, Weights};
use crate::interference::usage_model::UsageModel;

/// The trained model.
#[derive(Debug, Clone)]
pub(super) struct Gaussian {
    prior: Prior,
    pairs: GaussianProcess,
    /// Residuals of the logarithm of the slowdown in sets of three or more, relative to their pairs.
    larger: Option<GaussianProcess>,
    memory_fit: MemoryFitModel,
    usage: UsageModel,
    calibration: Calibration,
}

/// The part of the model that is not tensors.
#[derive(Debug, Serialize, Deserialize)]
struct ModelMetadata {
    prior: Prior,
    pairs: GpMetadata,
    larger: Option<GpMetadata>,
    #[serde(rename = "room")]
    memory_fit: MemoryFitModel,
    usage: UsageModel,
    calibration: Calibration,
}

impl Gaussian {
    /// Fits both processes, and the models of memory and utilization.
    pub(super) fn learn(
        measured: &[MeasuredSet],
        prior: Prior,
        calibration: Calibration,
    ) -> Result<Gaussian, TrainError> {
        Ok(Gaussian { calibration, ..Gaussian::learn_more(measured, prior, None)? })
    }

    /// Learns from measurements in addition to what a model has learned before.
    fn learn_more(
        measured: &[MeasuredSet],
        prior: Prior,
        before: Option<&Gaussian>,
    ) -> Result<Gaussian, TrainError> {
        let mut pairs =
            before.map_or_else(Observations::default, |before| before.pairs.observations().clone());
        for (set, member, observed) in ran(measured).filter(|(set, ..)| set.members.len() == 2) {
            pairs.add(set, member, observed.slowdown.max(1.0).ln(), Censoring::of(observed));
        }
        if pairs.is_empty() {
            return Err(TrainError::NoPairs);
        }
        let mut model = Gaussian {
            prior,
            pairs: pairs.learn(prior),
            larger: None,
            memory_fit: before.map_or_else(MemoryFitModel::default, |before| before.memory_fit.clone()),
            usage: before.map_or_else(UsageModel::default, |before| before.usage),
            calibration: before.map_or_else(Calibration::default, |before| before.calibration.clone()),
        };
        let seen = before.and_then(|before| before.larger.as_ref());
        let mut larger = seen.map_or_else(Observations::default, |larger| larger.observations().clone());
        let mut pairs = Questions::new(&model.pairs);
        for (set, member, observed) in ran(measured).filter(|(set, ..)| set.members.len() > 2) {
            let asked = pairs.ask(set);
            let of_pairs = LogSlowdown::of_pairs(pairs.predict_pairs(&asked, member).into_iter());
            let target = observed.slowdown.max(1.0).ln() - of_pairs.mean;
            larger.add(set, member, target, Censoring::of(observed));
        }
        model.larger = (!larger.is_empty()).then(|| larger.learn(prior));
        if before.is_none() {
            model.memory_fit = MemoryFitModel::learn(measured);
            model.usage = UsageModel::learn(measured);
        }
        Ok(model)
    }

    /// Mean absolute error of the logarithm of the slowdowns.
    pub(super) fn loss(&self, measured: &[MeasuredSet]) -> f64 {
        let mut questions = self.questions();
        let error = |(set, member, observed)| {
            let observed: &MeasuredMember = observed;
            let asked = questions.ask(set);
            (questions.predict(&asked, member).mean.max(0.0) - observed.slowdown.max(1.0).ln()).abs()
        };
        let errors: Vec<f64> = ran(measured).map(error).collect();
        errors.iter().sum::<f64>() / errors.len().max(1) as f64
    }

    fn questions<'s>(&self) -> SetQuestions<'_, 's> {
        SetQuestions { pairs: Questions::new(&self.pairs), larger: self.larger.as_ref().map(Questions::new) }
    }

    fn predict_set<'s>(
        &self,
        set: &'s ColocationSet,
        questions: &mut SetQuestions<'_, 's>,
    ) -> Vec<ColocationEstimate> {
        if let [member] = &set.members[..] {
            return vec![ColocationEstimate::alone(member)];
        }
        let fits = self.memory_fit.fits(set);
        let asked = questions.ask(set);
        let member = |(place, member): (usize, &SetMember)| {
            let expected = questions.predict(&asked, place).with_caution();
            let slowed = self.calibration.rescale(&set.gpu, expected).answer(member);
            ColocationEstimate { fits, ..self.usage.complete(set, place, slowed) }
        };
        set.members.iter().enumerate().map(member).collect()
    }
}

/// Questions to both processes.
struct SetQuestions<'p, 's> {
    pairs: Questions<'p, 's>,
    larger: Option<Questions<'p, 's>>,
}

/// A set in the questions to both processes.
struct AskedOfBoth<'s> {
    pairs: AskedSet<'s>,
    larger: Option<AskedSet<'s>>,
}

impl<'s> SetQuestions<'_, 's> {
    fn ask(&mut self, set: &'s ColocationSet) -> AskedOfBoth<'s> {
        let larger = self.larger.as_mut().filter(|_| set.members.len() > 2);
        AskedOfBoth { pairs: self.pairs.ask(set), larger: larger.map(|larger| larger.ask(set)) }
    }

    fn predict(&self, asked: &AskedOfBoth<'_>, member: usize) -> LogSlowdown {
        if asked.pairs.members() == 2 {
            return self.pairs.predict(&asked.pairs, member);
        }
        let of_pairs = LogSlowdown::of_pairs(self.pairs.predict_pairs(&asked.pairs, member).into_iter());
        match self.larger.as_ref().zip(asked.larger.as_ref()) {
            Some((larger, asked)) => {
                let more = larger.predict(asked, member);
                LogSlowdown { mean: of_pairs.mean + more.mean, variance: more.variance }
            }
            None => of_pairs,
        }
    }
}

impl Interference for Gaussian {
    fn predict(&self, sets: &[ColocationSet]) -> Vec<Vec<ColocationEstimate>> {
        let mut questions = self.questions();
        sets.iter().map(|set| self.predict_set(set, &mut questions)).collect()
    }
}

impl Model for Gaussian {
    fn weights(&self) -> Weights {
        let mut tensors = BTreeMap::new();
        let mut stored = |name: &str, process: &GaussianProcess| {
            let (description, factors, targets) = process.to_stored();
            for (kind, values) in [("factors", factors), ("targets", targets)] {
                tensors.extend(tensor(values).map(|tensor| (format!("{name}.{kind}"), tensor)));
            }
            description
        };
        let pairs = stored("pairs", &self.pairs);
        let larger = self.larger.as_ref().map(|larger| stored("larger", larger));
        let Gaussian { prior, memory_fit, usage, calibration, .. } = self.clone();
        let metadata = ModelMetadata { prior, pairs, larger, memory_fit, usage, calibration };
        Weights { tensors, metadata: serde_json::to_value(metadata).unwrap_or_default() }
    }

    fn features(&self) -> Vec<String> {
        let usual = ["model", "batch", "precision", "family", "gpu", "sharing", "members"];
        usual.into_iter().map(str::to_owned).chain(self.pairs.numbers()).collect()
    }

    /// Solves the equations again with all data; what was learned before is kept.
    fn adapted(&self, observed: &[MeasuredSet]) -> Box<dyn Interference> {
        let learned = Gaussian::learn_more(observed, self.prior, Some(self));
        Box::new(learned.unwrap_or_else(|_| self.clone()))
    }
}

impl Gaussian {
    pub(super) fn restored(weights: &Weights) -> Result<Gaussian, RestoreError> {
        let metadata: ModelMetadata = serde_json::from_value(weights.metadata.clone())?;
        let process = |name: &str, description: GpMetadata| {
            let values = |kind: &str| {
                let name = format!("{name}.{kind}");
                let tensor =
                    weights.tensors.get(&name).ok_or_else(|| RestoreError::MissingTensor(name.clone()))?;
                Ok::<_, RestoreError>(tensor.to_dtype(DType::F64)?.to_vec1::<f64>()?)
            };
            let (factors, targets) = (values("factors")?, values("targets")?);
            let missing = || RestoreError::MissingTensor(format!("{name}.factors"));
            GaussianProcess::restored(description, factors, targets).ok_or_else(missing)
        };
        Ok(Gaussian {
            prior: metadata.prior,
            pairs: process("pairs", metadata.pairs)?,
            larger: metadata.larger.map(|larger| process("larger", larger)).transpose()?,
            memory_fit: metadata.memory_fit,
            usage: metadata.usage,
            calibration: metadata.calibration,
        })
    }
}

fn tensor(values: &[f64]) -> Option<Tensor> {
    Tensor::from_slice(values, values.len(), &Device::Cpu).ok()
}
