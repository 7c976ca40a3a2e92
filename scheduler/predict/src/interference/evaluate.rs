//! The accuracy of predictions.

use std::collections::BTreeMap;

use cohabit_policy::interference::{
    ColocationEstimate, GpuKind, Interference, MeasuredMember, MeasuredSet, SetOutcome,
};
use serde::{Deserialize, Serialize};

use super::usage_model::UsageModel;

/// The accuracy of predictions. A metric is `None` if nothing of its kind was measured.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct PredictionMetrics {
    /// Number of members of the sets that ran.
    pub rows: usize,
    /// Mean absolute error of the slowdown, as a fraction of the measured one.
    pub mape_slowdown: Option<f64>,
    /// 95th percentile of the absolute error of the slowdown, as a fraction of the measured one.
    pub p95_ape_slowdown: Option<f64>,
    /// Largest absolute error of the slowdown, as a fraction of the measured one.
    pub max_ape_slowdown: Option<f64>,
    /// Fraction of measured slowdowns whose logarithm lies within one stated uncertainty of the prediction;
    /// 0.68 if uncertainties are calibrated.
    #[serde(default)]
    pub coverage_1sigma: Option<f64>,
    /// The same for two stated uncertainties; 0.95 if they are calibrated.
    #[serde(default)]
    pub coverage_2sigma: Option<f64>,
    /// Mean absolute error of the memory, as a fraction of the measured one.
    pub mape_memory: Option<f64>,
    /// The same error of the memory alone, scaled: the baseline of models that learn memory.
    #[serde(default)]
    pub mape_memory_scaled: Option<f64>,
    /// Mean absolute error of the utilization, as a fraction of the measured one.
    #[serde(rename = "mape_utilisation")]
    pub mape_utilization: Option<f64>,
    /// The same error of the utilization alone, divided by the predicted slowdown and scaled.
    #[serde(rename = "mape_utilisation_scaled", default)]
    pub mape_utilization_scaled: Option<f64>,
    /// Of the sets that did not fit, the fraction that was predicted not to fit.
    pub infeasible_recall: Option<f64>,
    /// Of the sets that were predicted not to fit, the fraction that did not.
    pub infeasible_precision: Option<f64>,
}

/// Evaluates a model on measured sets. Sets of one job need no prediction and do not count. The scaled values
/// beside memory and utilization have the factors that suit these measurements best.
#[must_use]
pub fn evaluate(model: &dyn Interference, measured: &[MeasuredSet]) -> PredictionMetrics {
    let mut accumulator = EvaluationAccumulator::default();
    accumulator.add(model, &UsageModel::learn(measured), measured);
    accumulator.figures()
}

/// Accumulates the predictions of several models, each for its own part of the measurements.
#[derive(Debug, Default, Clone)]
pub struct EvaluationAccumulator {
    by_gpu: BTreeMap<GpuKind, PairedAnswers>,
}

/// Errors of predictions.
#[derive(Debug, Default, Clone)]
struct PairedAnswers {
    slowdown: Vec<f64>,
    /// Slowdowns within one and within two stated uncertainties.
    within: [usize; 2],
    memory: UsageErrors,
    utilization: UsageErrors,
    did_not_fit: FitCounts,
    fitted: FitCounts,
}

/// Errors of the predictions of what members use.
#[derive(Debug, Default, Clone)]
struct UsageErrors {
    predicted: Vec<f64>,
    /// Of what they use alone, scaled.
    scaled: Vec<f64>,
}

/// Numbers of sets by what was predicted of them.
#[derive(Debug, Default, Clone, Copy)]
struct FitCounts {
    predicted_to_fit: usize,
    predicted_not_to_fit: usize,
}

/// A set whose probability of fitting is below this counts as predicted not to fit.
const LIKELY_TO_FIT: f64 = 0.5;

impl EvaluationAccumulator {
    /// Adds the predictions of one model for these measurements, and what `scaling` makes of the memory and
    /// utilization of each job alone.
    pub(crate) fn add(&mut self, model: &dyn Interference, scaling: &UsageModel, measured: &[MeasuredSet]) {
        let co_located: Vec<&MeasuredSet> = measured.iter().filter(|it| it.set.members.len() > 1).collect();
        let sets: Vec<_> = co_located.iter().map(|it| it.set.clone()).collect();
        for (predicted, measured) in model.predict(&sets).iter().zip(co_located) {
            let scaled = |(place, predicted): (usize, &ColocationEstimate)| {
                scaling.complete(&measured.set, place, *predicted)
            };
            let scaled: Vec<ColocationEstimate> = predicted.iter().enumerate().map(scaled).collect();
            let of_gpu = self.by_gpu.entry(measured.set.gpu.clone()).or_default();
            of_gpu.compare(predicted, &scaled, &measured.outcome);
        }
    }

    /// The metrics of all predictions.
    #[must_use]
    pub fn figures(&self) -> PredictionMetrics {
        let mut all = PairedAnswers::default();
        self.by_gpu.values().for_each(|of_gpu| all.merge(of_gpu));
        all.figures()
    }

    /// The metrics for each GPU model.
    #[must_use]
    pub fn by_gpu(&self) -> BTreeMap<GpuKind, PredictionMetrics> {
        self.by_gpu.iter().map(|(gpu, of_gpu)| (gpu.clone(), of_gpu.figures())).collect()
    }
}

impl PairedAnswers {
    fn compare(
        &mut self,
        predicted: &[ColocationEstimate],
        scaled: &[ColocationEstimate],
        outcome: &SetOutcome,
    ) {
        match outcome {
            SetOutcome::Ran(observed) => {
                self.fitted.count(predicted);
                for ((predicted, scaled), observed) in predicted.iter().zip(scaled).zip(observed) {
                    self.member(predicted, observed);
                    self.memory.add(predicted.memory, scaled.memory, observed.memory);
                    self.utilization.add(predicted.utilization, scaled.utilization, observed.utilization);
                }
            }
            SetOutcome::DidNotFit => self.did_not_fit.count(predicted),
        }
    }

    fn member(&mut self, predicted: &ColocationEstimate, observed: &MeasuredMember) {
        self.slowdown.push(error(predicted.slowdown, observed.slowdown));
        let apart = (predicted.slowdown / observed.slowdown).ln().abs();
        for (sigmas, within) in [1.0, 2.0].into_iter().zip(&mut self.within) {
            *within += usize::from(apart <= sigmas * predicted.uncertainty);
        }
    }

    fn merge(&mut self, other: &PairedAnswers) {
        self.slowdown.extend(&other.slowdown);
        self.within.iter_mut().zip(other.within).for_each(|(within, more)| *within += more);
        self.memory.merge(&other.memory);
        self.utilization.merge(&other.utilization);
        self.did_not_fit.merge(other.did_not_fit);
        self.fitted.merge(other.fitted);
    }

    fn figures(&self) -> PredictionMetrics {
        let mut slowdown = self.slowdown.clone();
        slowdown.sort_unstable_by(f64::total_cmp);
        let predicted_misfits = self.did_not_fit.predicted_not_to_fit + self.fitted.predicted_not_to_fit;
        let did_not_fit = self.did_not_fit.predicted_not_to_fit + self.did_not_fit.predicted_to_fit;
        PredictionMetrics {
            rows: slowdown.len(),
            mape_slowdown: mean(&slowdown),
            p95_ape_slowdown: quantile(&slowdown, 0.95),
            max_ape_slowdown: slowdown.last().copied(),
            coverage_1sigma: part(self.within[0], slowdown.len()),
            coverage_2sigma: part(self.within[1], slowdown.len()),
            mape_memory: mean(&self.memory.predicted),
            mape_memory_scaled: mean(&self.memory.scaled),
            mape_utilization: mean(&self.utilization.predicted),
            mape_utilization_scaled: mean(&self.utilization.scaled),
            infeasible_recall: part(self.did_not_fit.predicted_not_to_fit, did_not_fit),
            infeasible_precision: part(self.did_not_fit.predicted_not_to_fit, predicted_misfits),
        }
    }
}

impl UsageErrors {
    fn add(&mut self, predicted: Option<f64>, scaled: Option<f64>, observed: Option<f64>) {
        let Some(observed) = observed.filter(|observed| *observed > 0.0) else { return };
        self.predicted.extend(predicted.map(|predicted| error(predicted, observed)));
        self.scaled.extend(scaled.map(|scaled| error(scaled, observed)));
    }

    fn merge(&mut self, other: &UsageErrors) {
        self.predicted.extend(&other.predicted);
        self.scaled.extend(&other.scaled);
    }
}

impl FitCounts {
    fn count(&mut self, predicted: &[ColocationEstimate]) {
        match predicted.iter().all(|member| member.fits >= LIKELY_TO_FIT) {
            true => self.predicted_to_fit += 1,
            false => self.predicted_not_to_fit += 1,
        }
    }

    fn merge(&mut self, other: FitCounts) {
        self.predicted_to_fit += other.predicted_to_fit;
        self.predicted_not_to_fit += other.predicted_not_to_fit;
    }
}

fn error(predicted: f64, observed: f64) -> f64 {
    (predicted - observed).abs() / observed
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn part(some: usize, all: usize) -> Option<f64> {
    (all > 0).then(|| some as f64 / all as f64)
}

/// The value below which this fraction of the others lies.
fn quantile(sorted: &[f64], part: f64) -> Option<f64> {
    sorted.get((sorted.len().saturating_sub(1) as f64 * part).round() as usize).copied()
}

#[cfg(test)]
mod tests {
    use cohabit_policy::interference::{ColocationSet, SetMember};

    use super::*;

    /// Predicts the batch size of a member as its slowdown; a member without batch size does not fit.
    #[derive(Debug)]
    struct FixedAnswer;

    impl Interference for FixedAnswer {
        fn predict(&self, sets: &[ColocationSet]) -> Vec<Vec<ColocationEstimate>> {
            let member = |member: &SetMember| ColocationEstimate {
                memory: Some(110.0),
                fits: if member.batch.is_some() { 1.0 } else { 0.0 },
                ..ColocationEstimate::slowed(member, member.batch.unwrap_or(1) as f64, 0.1)
            };
            sets.iter().map(|set| set.members.iter().map(member).collect()).collect()
        }
    }

    fn measured(batches: [Option<u64>; 2], slowdowns: Option<[f64; 2]>) -> MeasuredSet {
        let member = |batch| SetMember { batch, ..SetMember::default() };
        let set = ColocationSet { members: batches.map(member).into(), ..ColocationSet::default() };
        let observed = |slowdown| MeasuredMember { slowdown, memory: Some(100.0), utilization: None };
        let outcome = slowdowns
            .map_or(SetOutcome::DidNotFit, |slowdowns| SetOutcome::Ran(slowdowns.map(observed).into()));
        MeasuredSet { set, outcome }
    }

    #[test]
    fn errors_are_relative_to_the_measured_values() {
        let measured =
            [measured([Some(2), Some(3)], Some([2.5, 2.0])), measured([Some(1), Some(4)], Some([1.0, 4.0]))];
        let figures = evaluate(&FixedAnswer, &measured);
        assert_eq!(figures.rows, 4);
        assert!((figures.mape_slowdown.unwrap() - 0.7 / 4.0).abs() < 1e-12, "{figures:?}");
        assert_eq!((figures.p95_ape_slowdown, figures.max_ape_slowdown), (Some(0.5), Some(0.5)));
        assert!((figures.mape_memory.unwrap() - 0.1).abs() < 1e-12, "{figures:?}");
        assert_eq!((figures.mape_utilization, figures.infeasible_recall), (None, None));
    }

    #[test]
    fn slowdowns_within_the_stated_uncertainty_are_counted() {
        let observed = |factor: f64| [2.0 * factor, 2.0];
        let measured: Vec<_> =
            [1.05, 1.15, 1.25].map(|factor| measured([Some(2), Some(2)], Some(observed(factor)))).into();
        let figures = evaluate(&FixedAnswer, &measured);
        assert_eq!((figures.coverage_1sigma, figures.coverage_2sigma), (Some(4.0 / 6.0), Some(5.0 / 6.0)));
    }

    #[test]
    fn metrics_exist_by_gpu_and_in_total() {
        let on = |gpu: &str, slowdown| {
            let mut measured = measured([Some(2), Some(2)], Some([slowdown; 2]));
            measured.set.gpu = GpuKind::named(gpu);
            measured
        };
        let mut accumulator = EvaluationAccumulator::default();
        accumulator.add(&FixedAnswer, &UsageModel::default(), &[on("v100", 2.0), on("k80", 4.0)]);
        let of = |gpu: &str| accumulator.by_gpu()[&GpuKind::named(gpu)].mape_slowdown;
        assert_eq!(
            (of("v100"), of("k80"), accumulator.figures().mape_slowdown),
            (Some(0.0), Some(0.5), Some(0.25))
        );
    }

    #[test]
    fn recall_and_precision_of_misfits_are_counted() {
        let figures = evaluate(
            &FixedAnswer,
            &[
                measured([None, Some(1)], None),
                measured([Some(1), Some(1)], None),
                measured([Some(1), None], Some([1.0, 1.0])),
                measured([None, None], None),
            ],
        );
        assert_eq!(figures.infeasible_recall, Some(2.0 / 3.0));
        assert_eq!(figures.infeasible_precision, Some(2.0 / 3.0));
    }
}
