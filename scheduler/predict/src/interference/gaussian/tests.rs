//! What Gaussian processes learn of sets whose slowdowns follow the law.

use cohabit_policy::interference::{
    AnalyticInterference, ColocationEstimate, ColocationSet, GpuKind, Interference, MaxMinSharing,
    MeasuredMember, MeasuredSet, SetMember, SetOutcome, SoloMetrics,
};

use super::*;
use crate::interference::usage_model::UsageModel;
use crate::interference::{EvaluationAccumulator, ModelTrainer, StoredModel, held_back};

const MODELS: usize = 16;

/// A job of one of several models; the higher the number, the higher its utilization.
fn member(number: usize) -> SetMember {
    let busy = 0.15 + 0.8 * number as f64 / MODELS as f64;
    SetMember {
        model: format!("model {number}"),
        batch: Some(8 << (number % 4)),
        solo: SoloMetrics { utilization: Some(busy), memory: Some(1e9), ..SoloMetrics::default() },
        ..SetMember::default()
    }
}

fn set(numbers: &[usize]) -> ColocationSet {
    let members = numbers.iter().map(|number| member(*number)).collect();
    ColocationSet { gpu: GpuKind::named("v100"), sharing: None, members }
}

/// A set with the slowdowns of the law.
fn measured(numbers: &[usize]) -> MeasuredSet {
    let set = set(numbers);
    let predicted =
        AnalyticInterference::<MaxMinSharing>::default().predict(std::slice::from_ref(&set)).remove(0);
    let observed = |predicted: &ColocationEstimate| MeasuredMember {
        slowdown: predicted.slowdown,
        memory: predicted.memory,
        utilization: predicted.utilization,
    };
    MeasuredSet { set, outcome: SetOutcome::Ran(predicted.iter().map(observed).collect()) }
}

/// All pairs of this many models, every third triple, and an eighth as many quadruples.
fn sets(models: usize) -> Vec<MeasuredSet> {
    let mut sets = Vec::new();
    let mut triples = 0;
    for one in 0..models {
        for two in one..models {
            sets.push(measured(&[one, two]));
            for three in two..models {
                triples += 1;
                if triples % 3 == 0 {
                    sets.push(measured(&[one, two, three]));
                }
                if triples % 8 == 0 {
                    sets.push(measured(&[one, two, three, (one + three) / 2]));
                }
            }
        }
    }
    sets
}

fn trained(kind: &'static dyn ModelKind, measured: &[MeasuredSet]) -> Box<dyn Model> {
    ModelTrainer { kind, seed: 1, epochs: None }.train(measured, &mut |_| {}).unwrap()
}

fn error(model: &dyn Interference, measured: &[MeasuredSet]) -> f64 {
    let mut accumulator = EvaluationAccumulator::default();
    accumulator.add(model, &UsageModel::learn(measured), measured);
    accumulator.figures().mape_slowdown.unwrap()
}

fn one(model: &dyn Interference, set: ColocationSet) -> Vec<ColocationEstimate> {
    model.predict(&[set]).remove(0)
}

#[test]
fn pairs_triples_and_quadruples_of_the_law_are_learned() {
    let (train, test) = held_back(&sets(MODELS), 5, 3);
    let model = trained(&GAUSSIAN_KIND, &train);
    for members in [2, 3, 4] {
        let of_size: Vec<_> = test.iter().filter(|it| it.set.members.len() == members).cloned().collect();
        let error = error(&*model, &of_size);
        assert!(!of_size.is_empty() && error < 0.03, "{members} members: {error}");
    }
    let figures = crate::interference::evaluate(&*model, &test);
    assert!(figures.mape_memory.unwrap() < 1e-9, "{figures:?}");
    assert!(figures.mape_utilization.unwrap() < 0.03, "{figures:?}");
}

#[test]
fn a_job_alone_is_not_slowed_and_the_order_of_partners_is_irrelevant() {
    for kind in [&ADDITIVE_KIND, &GAUSSIAN_KIND] {
        let model = trained(kind, &sets(8));
        assert_eq!(one(&*model, set(&[7]))[0], ColocationEstimate::alone(&member(7)));
        assert!(one(&*model, set(&[])).is_empty());
        let ordered = one(&*model, set(&[1, 5, 7]));
        let rotated = one(&*model, set(&[5, 7, 1]));
        for (at, elsewhere) in [(0, 2), (1, 0), (2, 1)] {
            assert!(
                (ordered[at].slowdown - rotated[elsewhere].slowdown).abs() < 1e-9,
                "{ordered:?} {rotated:?}"
            );
        }
    }
}

#[test]
fn unseen_jobs_get_a_larger_uncertainty() {
    let model = trained(&GAUSSIAN_KIND, &sets(8));
    let known = one(&*model, set(&[3, 6]))[0];
    let unseen = SetMember { model: "stranger".to_owned(), ..SetMember::default() };
    let mut query = set(&[3, 6]);
    query.members[0] = unseen;
    let unknown = one(&*model, query.clone())[0];
    query.gpu = GpuKind::named("unheard of");
    let elsewhere = one(&*model, query)[0];
    assert!(known.uncertainty < unknown.uncertainty, "{known:?} {unknown:?}");
    assert!(unknown.uncertainty <= elsewhere.uncertainty, "{unknown:?} {elsewhere:?}");
    assert!(elsewhere.slowdown >= 1.0 && elsewhere.memory.is_none());
}

#[test]
fn a_stored_model_predicts_the_same_to_the_last_bit() {
    let folder = std::env::temp_dir().join(format!("cohabit-gaussian-{}", std::process::id()));
    let model = trained(&GAUSSIAN_KIND, &sets(8));
    let query: Vec<ColocationSet> = [&[1, 2][..], &[3, 4, 5], &[0, 7]].map(set).into();
    let predicted = model.predict(&query);
    let card = crate::interference::ModelCard { model: "gaussian".to_owned(), ..Default::default() };
    StoredModel { card, model }.save(&folder).unwrap();
    let restored = StoredModel::load(&folder).unwrap();
    assert_eq!(restored.model.predict(&query), predicted);
    let damaged = folder.join("weights.safetensors");
    std::fs::write(&damaged, b"not whole").unwrap();
    let refusal = StoredModel::load(&folder).unwrap_err().to_string();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(refusal.contains("weights.safetensors"), "{refusal}");
}

#[test]
fn observed_sets_improve_predictions_for_a_newcomer() {
    let has = |it: &MeasuredSet| it.set.members.iter().any(|member| member.model == "model 12");
    let strip = |it: &MeasuredSet| {
        let mut stripped = it.clone();
        stripped.set.members.iter_mut().for_each(|member| member.solo.utilization = None);
        stripped
    };
    let all: Vec<MeasuredSet> = sets(MODELS).iter().map(strip).collect();
    let (with, without): (Vec<_>, Vec<_>) = all.into_iter().partition(has);
    let pairs: Vec<MeasuredSet> = with.into_iter().filter(|it| it.set.members.len() == 2).collect();
    let (observed, query): (Vec<_>, Vec<_>) =
        pairs.chunks(4).map(|four| (four[0].clone(), &four[1..])).unzip();
    let query = &query.concat();
    let model = trained(&GAUSSIAN_KIND, &without);
    let (before, after) = (error(&*model, query), error(&*model.adapted(&observed), query));
    assert!(after < 0.6 * before, "{before} {after}");
    let corrected = error(&CorrectedModel::of(trained(&GAUSSIAN_KIND, &without), &observed), query);
    assert!(corrected < 0.7 * before, "{before} {corrected}");
}

#[test]
fn nothing_can_be_learned_where_no_pair_ran() {
    let alone = [measured(&[1]), MeasuredSet { outcome: SetOutcome::DidNotFit, ..measured(&[1, 2]) }];
    let refused = ModelTrainer { kind: &GAUSSIAN_KIND, seed: 1, epochs: None }.train(&alone, &mut |_| {});
    assert!(matches!(refused, Err(TrainError::NoPairs)));
}

#[test]
fn only_the_newest_of_very_many_measurements_are_learned() {
    let nine = MeasuredMember { slowdown: 9.0, ..MeasuredMember::default() };
    let old = MeasuredSet { outcome: SetOutcome::Ran(vec![nine; 2]), ..measured(&[0, 1]) };
    let mut many = vec![old; 10];
    many.extend((0..1_500).map(|number| measured(&[2 + number % 5, 7 + number % 3])));
    let model = trained(&ADDITIVE_KIND, &many);
    let rows = model.weights().tensors["pairs.targets"].elem_count();
    let predicted = one(&*model, set(&[2, 7]));
    assert_eq!(rows, 3_000);
    assert!((predicted[0].slowdown / slowdown(&measured(&[2, 7])) - 1.0).abs() < 0.1, "{predicted:?}");
}

fn slowdown(measured: &MeasuredSet) -> f64 {
    let SetOutcome::Ran(observed) = &measured.outcome else { panic!("{measured:?}") };
    observed[0].slowdown
}

#[test]
fn names_in_stored_metadata_do_not_change() {
    let metadata = trained(&GAUSSIAN_KIND, &sets(4)).weights().metadata;
    let keys = |value: &serde_json::Value| {
        value.as_object().unwrap().keys().cloned().collect::<std::collections::BTreeSet<_>>()
    };
    let expected = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(keys(&metadata), expected(&["prior", "pairs", "larger", "room", "usage", "calibration"]));
    assert_eq!(keys(&metadata["pairs"]), expected(&["prior", "mean", "lessons"]));
    let lessons = &metadata["pairs"]["lessons"];
    assert_eq!(keys(lessons), expected(&["cast", "places", "seats", "readings"]));
    assert_eq!(keys(&lessons["seats"][0]), expected(&["place", "own", "partners"]));
    assert_eq!(keys(&metadata["usage"]), expected(&["memory", "utilisation"]));
    assert_eq!(keys(&metadata["usage"]["utilisation"]), expected(&["OfMember"]));
}
