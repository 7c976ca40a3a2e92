//! The outputs for co-located memory and utilization, on sets where neither is a multiple of the value alone.

use std::collections::BTreeMap;

use candle_core::{DType, Var};
use cohabit_policy::interference::{MeasuredMember, MeasuredSet, SetOutcome};

use super::feature_encoder::FeatureEncoder;
use super::network::Network;
use super::synthetic::{JOBS, SHARED_CONTEXT, drawn, estimates_alone, set, with_usage};
use super::usage_outputs::UsageOutputs;
use super::{E_GGAT_KIND, E_GGAT_PLUS_KIND, EGgatPlus};
use crate::interference::cross_validation::{HoldOut, held_back};
use crate::interference::evaluate::{EvaluationAccumulator, PredictionMetrics, evaluate};
use crate::interference::gaussian::GAUSSIAN_KIND;
use crate::interference::model::{Model, ModelKind, TrainingData};
use crate::interference::model_trainer::ModelTrainer;
use crate::interference::usage_source::{UsageSource, UsageSources};
use crate::networks::Parameters;

const EPOCHS: usize = 40;

/// Pairs and triples with what their members use.
fn used() -> Vec<MeasuredSet> {
    let sets = [drawn(&JOBS, 2, 60, 1), drawn(&JOBS, 3, 90, 2)].concat();
    sets.into_iter().map(with_usage).collect()
}

fn train(kind: &dyn ModelKind, measured: &[MeasuredSet], epochs: usize) -> Box<dyn Model> {
    let data = TrainingData { train: measured, held_back: &[], seed: 7, epochs: Some(epochs) };
    kind.train(&data, &mut |_| ()).unwrap()
}

/// Changes what was observed of every member of the sets that ran; the number is that of the set.
fn map_observed(
    mut measured: Vec<MeasuredSet>,
    change: impl Fn(usize, &mut MeasuredMember),
) -> Vec<MeasuredSet> {
    for (at, it) in measured.iter_mut().enumerate() {
        if let SetOutcome::Ran(observed) = &mut it.outcome {
            observed.iter_mut().for_each(|observed| change(at, observed));
        }
    }
    measured
}

#[track_caller]
fn assert_better(figures: &PredictionMetrics) {
    let errors = [
        (figures.mape_memory.unwrap(), figures.mape_memory_scaled.unwrap()),
        (figures.mape_utilization.unwrap(), figures.mape_utilization_scaled.unwrap()),
    ];
    for (learned, scaled) in errors {
        assert!(scaled > 0.05, "scaled values are wrong here: {figures:?}");
        assert!(learned < 0.03 && learned < 0.4 * scaled, "{learned}, scaled {scaled}: {figures:?}");
    }
}

#[test]
fn learned_usage_beats_scaled_values_on_held_out_sets() {
    let trainer = ModelTrainer { kind: E_GGAT_PLUS_KIND, seed: 1, epochs: Some(EPOCHS) };
    let mut accumulator = EvaluationAccumulator::default();
    trainer.cross_validate(&used(), HoldOut::Sets, 0, &mut accumulator, &mut |_, _| {}).unwrap();
    assert_better(&accumulator.figures());
}

#[test]
fn rows_without_a_quantity_do_not_count() {
    let (train_on, test) = held_back(&used(), 5, 1);
    let partial = map_observed(train_on, |at, observed| match at % 3 {
        0 => observed.memory = None,
        1 => observed.utilization = None,
        _ => {}
    });
    assert_better(&evaluate(&*train(E_GGAT_PLUS_KIND, &partial, EPOCHS), &test));
}

#[test]
fn learning_usage_does_not_make_slowdowns_worse() {
    let (train_on, test) = held_back(&used(), 5, 1);
    let without = map_observed(train_on.clone(), |_, observed| {
        (observed.memory, observed.utilization) = (None, None);
    });
    let error = |measured: &[MeasuredSet]| {
        evaluate(&*train(E_GGAT_PLUS_KIND, measured, EPOCHS), &test).mape_slowdown.unwrap()
    };
    let (with, without) = (error(&train_on), error(&without));
    assert!(with < without + 0.005, "{with} with and {without} without");
}

#[test]
fn a_quantity_that_no_row_has_is_scaled() {
    let scaled_memory = |measured: &[MeasuredSet]| {
        let process = train(&GAUSSIAN_KIND, measured, 1).predict(&[set(&[13, 90])]).remove(0);
        let network = train(E_GGAT_PLUS_KIND, measured, 2);
        let predicted = network.predict(&[set(&[13, 90])]).remove(0);
        assert_eq!(predicted[0].memory, process[0].memory);
        network
    };
    let neither = drawn(&JOBS, 2, 30, 1);
    let network = scaled_memory(&neither);
    let not_measured = UsageSource::NotMeasured;
    assert_eq!(network.usage_sources(), UsageSources { memory: not_measured, utilization: not_measured });
    assert!(network.weights().tensors.keys().all(|name| !name.contains("usage")));
    let busy_only: Vec<MeasuredSet> = neither.into_iter().map(with_usage).collect();
    let network = scaled_memory(&map_observed(busy_only, |_, observed| observed.memory = None));
    assert_eq!(
        network.usage_sources(),
        UsageSources { memory: not_measured, utilization: UsageSource::Learned }
    );
    let released = train(E_GGAT_KIND, &used(), 1);
    assert_eq!(released.usage_sources(), UsageSources::default());
}

/// A table with usage changes nothing in what the other layers draw.
#[test]
fn heads_are_drawn_after_all_other_layers() {
    let drawn_parameters = |measured: &[MeasuredSet]| {
        let mut encoder = FeatureEncoder::learn(measured, EGgatPlus::SCALING);
        let base: Vec<_> = measured.iter().map(|it| estimates_alone(&it.set)).collect();
        let expected: Vec<_> = base.iter().map(Vec::as_slice).zip(measured).collect();
        encoder.usage = UsageOutputs::learn(&expected);
        let mut parameters = Parameters::drawn(1, DType::F64);
        EGgatPlus::new(&mut parameters, &encoder, 8).unwrap();
        let values = |(name, variable): (&str, &Var)| {
            (name.to_owned(), variable.flatten_all().unwrap().to_vec1::<f64>().unwrap())
        };
        parameters.iter().map(values).collect::<BTreeMap<_, _>>()
    };
    let without = map_observed(used(), |_, it| (it.memory, it.utilization) = (None, None));
    let (mut with, without) = (drawn_parameters(&used()), drawn_parameters(&without));
    let before = with.len();
    with.retain(|name, _| !name.starts_with("usage."));
    assert_eq!((with.len() + 6, with), (before, without));
}

#[test]
fn stored_heads_predict_the_same() {
    let model = train(E_GGAT_PLUS_KIND, &used(), 2);
    let restored = E_GGAT_PLUS_KIND.restore(&model.weights()).unwrap();
    let questions = [set(&[13, 90]), set(&[24, 57, 79])];
    assert_eq!(restored.predict(&questions), model.predict(&questions));
    assert_eq!(restored.usage_sources(), model.usage_sources());
}

/// The same set with eight times the memory: one to three of the jobs fill the GPU of 80 GB.
fn large(MeasuredSet { mut set, outcome }: MeasuredSet) -> MeasuredSet {
    let held = |alone: f64| 8.0 * (alone - SHARED_CONTEXT);
    let members = set.members.iter().filter_map(|member| member.solo.memory).map(held);
    let members: Vec<f64> = members.collect();
    set.members.iter_mut().for_each(|member| member.solo.memory = member.solo.memory.map(|it| 8.0 * it));
    let SetOutcome::Ran(mut observed) = outcome else { panic!("synthetic sets run") };
    observed.iter_mut().zip(&members).for_each(|(observed, held)| observed.memory = Some(*held));
    let fits = members.iter().sum::<f64>() <= set.gpu.memory().unwrap().0 as f64;
    let outcome = if fits { SetOutcome::Ran(observed) } else { SetOutcome::DidNotFit };
    MeasuredSet { set, outcome }
}

#[test]
fn learned_memory_decides_whether_a_set_fits() {
    let (train_on, test) = held_back(&used().into_iter().map(large).collect::<Vec<_>>(), 3, 1);
    let recall_and_precision = |kind: &dyn ModelKind| {
        let figures = evaluate(&*train(kind, &train_on, EPOCHS), &test);
        (figures.infeasible_recall.unwrap(), figures.infeasible_precision.unwrap())
    };
    let (found, right) = recall_and_precision(E_GGAT_PLUS_KIND);
    let (_, right_by_sum) = recall_and_precision(&GAUSSIAN_KIND);
    assert!(found > 0.95 && right > right_by_sum + 0.1, "{found} {right}, by the sum {right_by_sum}");
}
