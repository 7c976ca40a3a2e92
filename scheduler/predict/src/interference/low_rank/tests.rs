//! What low-rank models learn.

use cohabit_policy::interference::{
    ColocationEstimate, ColocationSet, GpuKind, Interference, MeasuredMember, MeasuredSet, SetMember,
    SetOutcome, SoloMetrics, UNKNOWN_UNCERTAINTY,
};
use cohabit_types::ModelFamily;

use super::*;
use crate::interference::{ModelCard, ModelTrainer, StoredModel, evaluate, held_back};

const MODELS: usize = 9;

fn member(number: usize) -> SetMember {
    SetMember {
        model: format!("model {number}"),
        batch: Some(8 << (number % 4)),
        family: Some(if number < MODELS / 2 { ModelFamily::Cnn } else { ModelFamily::Rnn }),
        ..SetMember::default()
    }
}

fn set(gpu: &str, numbers: &[usize]) -> ColocationSet {
    let members = numbers.iter().map(|number| member(*number)).collect();
    ColocationSet { gpu: GpuKind::named(gpu), sharing: None, members }
}

/// The sensitivity of one, the pressure of the other, and one product of both.
fn measured(gpu: &str, one: usize, other: usize) -> MeasuredSet {
    let part = |number: usize| number as f64 / MODELS as f64;
    let on = if gpu == "k80" { 0.2 } else { 0.0 };
    let ln =
        |own: f64, partner: f64| 0.1 + on + 0.4 * own + 0.3 * partner + 0.3 * (own - 0.5) * (0.5 - partner);
    let observed = |own, partner| MeasuredMember {
        slowdown: ln(part(own), part(partner)).exp(),
        ..MeasuredMember::default()
    };
    let outcome = SetOutcome::Ran(vec![observed(one, other), observed(other, one)]);
    MeasuredSet { set: set(gpu, &[one, other]), outcome }
}

fn pairs() -> Vec<MeasuredSet> {
    let of = |gpu| (0..MODELS).flat_map(move |one| (one..MODELS).map(move |other| measured(gpu, one, other)));
    of("k80").chain(of("v100")).collect()
}

fn trained(measured: &[MeasuredSet]) -> Box<dyn Model> {
    ModelTrainer { kind: &LowRankKind, seed: 1, epochs: None }.train(measured, &mut |_| {}).unwrap()
}

fn one(model: &dyn Interference, set: ColocationSet) -> Vec<ColocationEstimate> {
    model.predict(&[set]).remove(0)
}

#[test]
fn interactions_of_two_jobs_are_learned() {
    let (train, test) = held_back(&pairs(), 5, 3);
    let error = evaluate(&*trained(&train), &test).mape_slowdown.unwrap();
    assert!(error < 0.015, "{error}");
}

#[test]
fn the_model_holds_only_effects() {
    let model = trained(&pairs());
    let numbers: usize = model.weights().tensors.values().map(candle_core::Tensor::elem_count).sum();
    let covariates = model.weights().tensors["sensitivity"].elem_count();
    assert_eq!(numbers, covariates * (2 + 2 * 3 * effects::RANK));
}

#[test]
fn a_job_alone_is_not_slowed_and_the_order_of_partners_is_irrelevant() {
    let model = trained(&pairs());
    assert_eq!(one(&*model, set("v100", &[7]))[0], ColocationEstimate::alone(&member(7)));
    assert!(one(&*model, set("v100", &[])).is_empty());
    let ordered = one(&*model, set("v100", &[1, 5, 7]));
    let rotated = one(&*model, set("v100", &[5, 7, 1]));
    for (at, elsewhere) in [(0, 2), (1, 0), (2, 1)] {
        assert!((ordered[at].slowdown - rotated[elsewhere].slowdown).abs() < 1e-9, "{ordered:?} {rotated:?}");
    }
    assert!(ordered[1].slowdown > one(&*model, set("v100", &[5, 7]))[0].slowdown, "a crowd costs more");
}

#[test]
fn uncertainty_grows_with_what_is_unknown() {
    let model = trained(&pairs());
    let known = one(&*model, set("v100", &[3, 6]))[0].uncertainty;
    let mut query = set("v100", &[3, 6]);
    query.members[0].batch = Some(4_096);
    let in_other_steps = one(&*model, query.clone())[0].uncertainty;
    query.members[0].model = "stranger".to_owned();
    let unseen = one(&*model, query.clone())[0].uncertainty;
    query.gpu = GpuKind::named("unheard of");
    let elsewhere = one(&*model, query)[0].uncertainty;
    let all = [known, in_other_steps, unseen, elsewhere];
    assert!(all.is_sorted() && all[3] <= UNKNOWN_UNCERTAINTY && all[0] < 0.5 * all[2], "{all:?}");
}

#[test]
fn the_law_is_used_if_the_utilization_is_known() {
    let model = trained(&pairs());
    let mut query = set("unheard of", &[0, 8]);
    query.members.iter_mut().for_each(|member| "stranger".clone_into(&mut member.model));
    let before = one(&*model, query.clone());
    let idle = SoloMetrics { utilization: Some(0.05), ..SoloMetrics::default() };
    query.members.iter_mut().for_each(|member| member.solo = idle.clone());
    let after = one(&*model, query);
    for (before, after) in before.iter().zip(&after) {
        assert!(
            after.slowdown < before.slowdown && after.uncertainty < before.uncertainty,
            "{before:?} {after:?}"
        );
    }
}

#[test]
fn a_stored_model_predicts_the_same_and_a_damaged_one_is_refused() {
    let folder = std::env::temp_dir().join(format!("cohabit-low-rank-{}", std::process::id()));
    let model = trained(&pairs());
    let query = [set("v100", &[1, 2]), set("k80", &[3, 4, 5]), set("h200", &[0, 7])];
    let predicted = model.predict(&query);
    let card = ModelCard { model: "low-rank".to_owned(), ..ModelCard::default() };
    StoredModel { card, model }.save(&folder).unwrap();
    let restored = StoredModel::load(&folder).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    for (predicted, restored) in
        predicted.iter().flatten().zip(restored.model.predict(&query).iter().flatten())
    {
        // Weights are stored in single precision.
        assert!((predicted.slowdown - restored.slowdown).abs() < 1e-5, "{predicted:?} {restored:?}");
    }
    let mut lacking = restored.model.weights();
    lacking.tensors.remove("factors");
    let refusal = LowRankKind.restore(&lacking).map(drop).unwrap_err().to_string();
    assert!(refusal.contains("'factors'"), "{refusal}");
}

#[test]
fn observed_sets_improve_predictions_for_a_newcomer() {
    let (with, without): (Vec<_>, Vec<_>) =
        pairs().into_iter().partition(|it| it.set.members.iter().any(|member| member.model == "model 7"));
    let (observed, query): (Vec<_>, Vec<_>) =
        with.chunks(3).map(|three| (three[0].clone(), &three[1..])).unzip();
    let query = query.concat();
    let model = trained(&without);
    let error = |model: &dyn Interference| evaluate(model, &query).mape_slowdown.unwrap();
    let (before, after) = (error(&*model), error(&*model.adapted(&observed)));
    assert!(after < 0.6 * before, "{before} {after}");
}

#[test]
fn training_is_deterministic_and_needs_a_pair() {
    let query = [set("v100", &[1, 2]), set("k80", &[8, 4])];
    assert_eq!(trained(&pairs()).predict(&query), trained(&pairs()).predict(&query));
    let alone = [MeasuredSet { outcome: SetOutcome::DidNotFit, ..measured("v100", 1, 2) }];
    let refused = ModelTrainer { kind: &LowRankKind, seed: 1, epochs: None }.train(&alone, &mut |_| {});
    assert!(matches!(refused, Err(TrainError::NoPairs)));
}
