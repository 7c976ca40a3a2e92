//! Properties of all networks: gradients, seeds, order of members, newcomers, stored weights.

use candle_core::{DType, Device, Tensor};
use cohabit_policy::interference::{
    ColocationEstimate, ColocationSet, GpuKind, Interference, MeasuredSet, SetMember, UNKNOWN_UNCERTAINTY,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::batch::{NetworkInput, SetBatch, Targets};
use super::ensemble_training;
use super::feature_encoder::FeatureEncoder;
use super::layers::Mode;
use super::network::{Network, TrainingOptions};
use super::synthetic::{JOBS, drawn, estimates_alone, job, measured, set, with_usage};
use super::usage_outputs::UsageOutputs;
use super::usage_targets::UsageTargets;
use super::{E_GGAT_KIND, E_GGAT_PLUS_KIND, EGgat, EGgatPlus, IAPP_KIND, Iapp};
use crate::interference::evaluate;
use crate::interference::model::{Epoch, Model, ModelKind, TrainError, TrainingData};
use crate::networks::{Parameters, gradients_agree};
use crate::random::RandomExt;

const KINDS: [&dyn ModelKind; 3] = [E_GGAT_KIND, E_GGAT_PLUS_KIND, IAPP_KIND];

fn pairs_and_triples() -> Vec<MeasuredSet> {
    [drawn(&JOBS, 2, 60, 1), drawn(&JOBS, 3, 30, 2)].concat()
}

fn train(kind: &dyn ModelKind, measured: &[MeasuredSet], epochs: usize) -> Box<dyn Model> {
    let data = TrainingData { train: measured, held_back: &[], seed: 7, epochs: Some(epochs) };
    kind.train(&data, &mut |_| ()).unwrap()
}

/// Sets of two to four, some with jobs and GPUs that are in no measurement.
fn questions() -> Vec<ColocationSet> {
    let stranger = SetMember { model: "stranger".to_owned(), ..SetMember::default() };
    let mut with_stranger = set(&[46, 24]);
    with_stranger.members.push(stranger);
    let elsewhere = ColocationSet { gpu: GpuKind::named("gpu of tomorrow"), ..set(&[90, 13]) };
    vec![set(&[13, 90]), set(&[90, 90]), set(&[24, 57, 79]), set(&[13, 35, 68, 90]), with_stranger, elsewhere]
}

fn slowdowns(predicted: &[Vec<ColocationEstimate>]) -> Vec<f64> {
    predicted.iter().flatten().map(|predicted| predicted.slowdown).collect()
}

/// Checks the gradient of the loss of a whole network with random parameters.
fn check_gradients<N: Network>() {
    let measured = [drawn(&JOBS[..4], 2, 2, 1), drawn(&JOBS[..4], 3, 2, 2)].concat();
    let measured: Vec<MeasuredSet> = measured.into_iter().map(with_usage).collect();
    let base: Vec<_> = measured.iter().map(|it| estimates_alone(&it.set)).collect();
    let expected: Vec<_> = base.iter().map(Vec::as_slice).zip(&measured).collect();
    let mut encoder = FeatureEncoder::learn(&measured, N::SCALING);
    encoder.usage = UsageOutputs::learn(&expected);
    let mut parameters = Parameters::drawn(1, DType::F64);
    let network = N::new(&mut parameters, &encoder, 4).unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(2);
    for (_, variable) in parameters.iter() {
        let numbers: Vec<f64> = (0..variable.elem_count()).map(|_| 0.4 * random.normal()).collect();
        variable.set(&Tensor::from_vec(numbers, variable.shape(), &Device::Cpu).unwrap()).unwrap();
    }
    let questions: Vec<NetworkInput<'_>> =
        measured.iter().map(|it| NetworkInput { set: &it.set, base: Vec::new() }).collect();
    let batch = SetBatch::of(&encoder, &questions, N::EDGES, DType::F64).unwrap();
    let mut targets = Targets::of(&measured.iter().collect::<Vec<_>>(), batch.count, DType::F64).unwrap();
    targets.usage = UsageTargets::of(&encoder.usage, &expected, batch.count, DType::F64).unwrap();
    gradients_agree(&parameters, || {
        let mut random = ChaCha8Rng::seed_from_u64(3);
        network.loss(&batch, &targets, &mut Mode::Training(&mut random)).unwrap()
    });
}

#[test]
fn the_gradients_of_e_ggat_are_those_of_central_differences() {
    check_gradients::<EGgat>();
}

#[test]
fn the_gradients_of_e_ggat_plus_are_those_of_central_differences() {
    check_gradients::<EGgatPlus>();
}

#[test]
fn the_gradients_of_iapp_and_iasp_are_those_of_central_differences() {
    check_gradients::<Iapp>();
}

#[test]
fn the_same_data_gives_the_same_weights_to_the_last_bit() {
    let bits = |model: &dyn Model| -> Vec<(String, Vec<u64>)> {
        let values = |tensor: Tensor| tensor.to_dtype(DType::F64).unwrap().flatten_all().unwrap();
        let weights = model.weights().tensors.into_iter();
        let bits = weights.map(|(name, tensor)| {
            let values: Vec<f64> = values(tensor).to_vec1().unwrap();
            (name, values.into_iter().map(f64::to_bits).collect())
        });
        bits.collect()
    };
    for kind in KINDS {
        let measured = pairs_and_triples();
        let (one, other) = (train(kind, &measured, 2), train(kind, &measured, 2));
        assert_eq!(bits(&*one), bits(&*other), "{kind:?}");
    }
}

#[test]
fn the_order_of_members_is_irrelevant() {
    for kind in KINDS {
        let model = train(kind, &pairs_and_triples(), 2);
        for question in questions() {
            let mut turned = question.clone();
            turned.members.rotate_left(1);
            let predicted = model.predict(std::slice::from_ref(&question)).remove(0);
            let mut turned = model.predict(&[turned]).remove(0);
            turned.rotate_right(1);
            for (predicted, turned) in predicted.iter().zip(&turned) {
                assert!((predicted.slowdown - turned.slowdown).abs() < 1e-4, "{kind:?}: {question:?}");
            }
        }
    }
}

#[test]
fn predictions_are_finite_and_bounded() {
    for kind in KINDS {
        let model = train(kind, &pairs_and_triples(), 2);
        assert_eq!(model.predict(&[]), Vec::<Vec<ColocationEstimate>>::new());
        assert_eq!(model.predict(&[set(&[57])]), [[ColocationEstimate::alone(&job(57))]]);
        let predicted = model.predict(&questions());
        for (predicted, question) in predicted.iter().zip(questions()) {
            assert_eq!(predicted.len(), question.members.len(), "{kind:?}");
            let sound = |it: &ColocationEstimate| {
                it.slowdown >= 1.0 && it.uncertainty.is_finite() && it.uncertainty > 0.0
            };
            assert!(predicted.iter().all(sound), "{kind:?}: {predicted:?}");
            assert!(
                predicted.iter().all(|it| it.uncertainty <= UNKNOWN_UNCERTAINTY),
                "{kind:?}: {predicted:?}"
            );
        }
    }
}

#[test]
fn stored_weights_predict_the_same() {
    for kind in KINDS {
        let model = train(kind, &pairs_and_triples(), 2);
        let restored = kind.restore(&model.weights()).unwrap();
        assert_eq!(restored.predict(&questions()), model.predict(&questions()), "{kind:?}");
        assert_eq!(restored.features(), model.features());
        let mut lacking = model.weights();
        let gone = lacking.tensors.keys().find(|name| name.starts_with("network0.")).unwrap().clone();
        lacking.tensors.remove(&gone);
        let error = kind.restore(&lacking).map(drop).unwrap_err().to_string();
        assert!(error.contains(gone.trim_start_matches("network0.")), "{error}");
    }
}

#[test]
fn e_ggat_plus_learns_the_law_of_triples_and_quadruples() {
    let train_on = [drawn(&JOBS, 2, 120, 1), drawn(&JOBS, 3, 100, 2), drawn(&JOBS, 4, 60, 3)].concat();
    let test_sets = [drawn(&JOBS, 3, 60, 4), drawn(&JOBS, 4, 60, 5)].concat();
    let model = train(E_GGAT_PLUS_KIND, &train_on, 24);
    let error = evaluate(&*model, &test_sets).mape_slowdown.unwrap();
    assert!(error < 0.03, "{error}");
}

#[test]
fn a_few_observed_sets_improve_predictions_for_a_newcomer() {
    // The newcomer behaves like a job with high utilization, and nothing in its description says so.
    let newcomer = |partner: u32| {
        let mut measured = measured(set(&[90, partner]));
        let member = &mut measured.set.members[0];
        *member = SetMember { model: "newcomer".to_owned(), batch: Some(16), ..SetMember::default() };
        member.solo.rate = Some(2.0);
        measured
    };
    let observed: Vec<MeasuredSet> = [24, 57, 79].map(newcomer).into();
    let test_sets: Vec<MeasuredSet> = [13, 35, 46, 68].map(newcomer).into();
    for kind in KINDS {
        let model = train(kind, &pairs_and_triples(), 10);
        let error = |model: &dyn Interference| evaluate(model, &test_sets).mape_slowdown.unwrap();
        let (before, after) = (error(&*model), error(&*model.adapted(&observed)));
        assert!(after < 0.6 * before, "{kind:?}: {before} before and {after} after");
    }
}

#[test]
fn a_training_reports_every_epoch() {
    let data = TrainingData { train: &pairs_and_triples(), held_back: &[], seed: 1, epochs: Some(3) };
    let mut reported: Vec<Epoch> = Vec::new();
    E_GGAT_PLUS_KIND.train(&data, &mut |epoch| reported.push(*epoch)).unwrap();
    let places: Vec<_> = reported.iter().map(|it| (it.epoch, it.of)).collect();
    assert_eq!(places, (1..=9).map(|epoch| (epoch, 9)).collect::<Vec<_>>());
    assert!(reported.iter().all(|it| it.loss.is_finite() && it.held_back_loss.is_some()));
    assert!(reported[2].loss < reported[0].loss);
}

#[test]
fn a_training_stops_without_improvement() {
    let data = TrainingData { train: &pairs_and_triples(), held_back: &[], seed: 1, epochs: None };
    let training_options = TrainingOptions {
        learning_rate: 0.0,
        patience: 3,
        epochs: 50,
        ensemble: 2,
        ..Iapp::TRAINING_OPTIONS
    };
    let mut reported = Vec::new();
    ensemble_training::train::<Iapp>(&data, training_options, &mut |epoch| reported.push(epoch.epoch))
        .unwrap();
    assert_eq!(reported, [1, 2, 3, 4, 51, 52, 53, 54]);
}

#[test]
fn missing_metrics_are_completed_from_measured_ones() {
    let model = train(IAPP_KIND, &drawn(&JOBS, 2, 60, 1), 50);
    let full = ColocationSet { members: vec![job(24), job(79)], ..set(&[]) };
    let mut partial = full.clone();
    partial.members.iter_mut().for_each(|member| member.solo.others.clear());
    let of = |set| model.contention(&[set]).unwrap().remove(0);
    let (full, partial) = (of(full), of(partial));
    assert_eq!(full[0].0.len(), 4);
    for (full, partial) in full.iter().zip(&partial) {
        assert_eq!(full.0[..2], partial.0[..2], "what was measured stays");
        let near = full.0.iter().zip(&partial.0).all(|(is, predicted)| (is - predicted).abs() < 0.15);
        assert!(near, "{full:?}: {partial:?}");
    }
    assert!(full[1].load(&full[1]) > full[0].load(&full[0]));
    assert!(train(E_GGAT_KIND, &pairs_and_triples(), 1).contention(&questions()).is_none());
}

#[test]
fn one_pair_is_enough_and_none_is_an_error() {
    for kind in KINDS {
        let model = train(kind, &drawn(&JOBS, 2, 1, 1), 2);
        assert_eq!(model.predict(&questions()).len(), questions().len(), "{kind:?}");
        let alone = [measured(set(&[57]))];
        let data = TrainingData { train: &alone, held_back: &[], seed: 1, epochs: None };
        assert!(matches!(kind.train(&data, &mut |_| ()), Err(TrainError::NoPairs)), "{kind:?}");
    }
}

#[test]
fn another_seed_gives_another_network() {
    let reported = |seed| {
        let measured = pairs_and_triples();
        let data = TrainingData { train: &measured, held_back: &[], seed, epochs: Some(2) };
        slowdowns(&IAPP_KIND.train(&data, &mut |_| ()).unwrap().predict(&questions()))
    };
    assert_ne!(reported(1), reported(2));
}

#[test]
fn names_in_stored_metadata_do_not_change() {
    let metadata = train(IAPP_KIND, &drawn(&JOBS, 2, 1, 1), 1).weights().metadata;
    let keys = |value: &serde_json::Value| {
        value.as_object().unwrap().keys().cloned().collect::<std::collections::BTreeSet<_>>()
    };
    let expected = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(keys(&metadata), expected(&["networks", "width", "look", "honesty", "worth", "base"]));
    assert_eq!(keys(&metadata["look"]), expected(&["scales", "metrics", "known", "pairs", "steps"]));
    let scale = &metadata["look"]["scales"]["scales"][0];
    assert_eq!(keys(scale), expected(&["name", "from", "width", "lacking"]));
    assert_eq!(keys(&metadata["honesty"]), expected(&["error", "by_base"]));
}
