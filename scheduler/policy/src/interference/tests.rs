//! What holds for every predictor that does not learn.

use cohabit_types::SharingStrategy;
use proptest::prelude::*;

use super::*;

fn member(model: &str, busy: Option<f64>) -> SetMember {
    let solo = SoloMetrics { utilization: busy, memory: Some(4e9), ..SoloMetrics::default() };
    SetMember { model: model.to_owned(), batch: Some(8), solo, ..SetMember::default() }
}

fn set(gpu: &str, members: &[SetMember]) -> ColocationSet {
    ColocationSet { gpu: GpuKind::named(gpu), sharing: None, members: members.to_vec() }
}

fn ran(set: ColocationSet, slowdowns: &[f64]) -> MeasuredSet {
    let observed =
        |slowdown: &f64| MeasuredMember { slowdown: *slowdown, memory: Some(5e9), utilization: None };
    MeasuredSet { set, outcome: SetOutcome::Ran(slowdowns.iter().map(observed).collect()) }
}

fn slowdowns(said: &[ColocationEstimate]) -> Vec<f64> {
    said.iter().map(|member| (member.slowdown * 1e6).round() / 1e6).collect()
}

fn one(model: &dyn Interference, set: ColocationSet) -> Vec<ColocationEstimate> {
    model.predict(&[set]).remove(0)
}

/// Pairs of a, b and c on a V100; a and d do not fit.
fn table() -> MeasuredTable {
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|model| member(model, Some(0.5)));
    MeasuredTable::of(&[
        ran(set("v100", &[a.clone(), b.clone()]), &[1.5, 1.2]),
        ran(set("v100", &[c.clone(), a.clone()]), &[1.1, 1.3]),
        ran(set("v100", &[b, c]), &[1.4, 2.0]),
        MeasuredSet { set: set("v100", &[a, d]), outcome: SetOutcome::DidNotFit },
    ])
}

#[test]
fn the_analytic_model_is_certain_only_with_measured_utilization() {
    let law = AnalyticInterference::<MaxMinSharing>::default();
    let known =
        one(&law, set("v100", &[member("a", Some(0.8)), member("b", Some(0.5)), member("c", Some(0.2))]));
    assert!((known[0].slowdown - 1.939).abs() < 1e-3 && (known[2].slowdown - 1.203).abs() < 1e-3);
    assert!((known[0].utilization.unwrap() - 0.8 / known[0].slowdown).abs() < 1e-12);
    assert_eq!((known[0].memory, known[0].fits), (Some(4e9), 1.0));
    let unknown = one(&law, set("v100", &[member("a", None), member("b", Some(0.5))]));
    assert_eq!(unknown[0].uncertainty, UNKNOWN_UNCERTAINTY);
    assert!(unknown[0].slowdown > 1.0 && known[0].uncertainty < UNKNOWN_UNCERTAINTY);
}

#[test]
fn more_memory_than_the_gpu_has_does_not_fit() {
    let law = AnalyticInterference::<MaxMinSharing>::default();
    let fits = |gpu, count| one(&law, set(gpu, &vec![member("a", Some(0.1)); count]))[0].fits;
    assert_eq!(
        [fits("v100", 4), fits("v100", 5), fits("h200", 5), fits("unheard of", 50)],
        [1.0, 0.0, 1.0, 1.0]
    );
}

#[test]
fn the_table_repeats_measurements_in_any_order_of_members() {
    let [a, b] = ["a", "b"].map(|model| member(model, Some(0.5)));
    let estimates = one(&table(), set("V100", &[a.clone(), b.clone()]));
    assert_eq!(slowdowns(&estimates), [1.5, 1.2]);
    assert_eq!((estimates[0].memory, estimates[0].fits), (Some(5e9), 1.0));
    assert_eq!(slowdowns(&one(&table(), set("v100", &[b, a]))), [1.2, 1.5]);
}

#[test]
fn measurements_of_one_set_become_their_mean() {
    let pair = || set("k80", &[member("a", None), member("b", None)]);
    let both = MeasuredTable::of(&[ran(pair(), &[1.0, 2.0]), ran(pair(), &[4.0, 2.0])]);
    assert_eq!(slowdowns(&one(&both, pair())), [2.0, 2.0]);
    let once = MeasuredTable::of(&[
        ran(pair(), &[1.0, 2.0]),
        MeasuredSet { set: pair(), outcome: SetOutcome::DidNotFit },
    ]);
    assert_eq!(one(&once, pair())[0].fits, 0.5);
}

#[test]
fn members_of_one_configuration_get_the_same_estimate() {
    let twins = || set("k80", &[member("a", None), member("a", None)]);
    let table = MeasuredTable::of(&[ran(twins(), &[1.0, 4.0])]);
    assert_eq!(slowdowns(&one(&table, twins())), [2.0, 2.0]);
}

#[test]
fn a_larger_set_is_composed_of_its_pairs() {
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|model| member(model, Some(0.5)));
    let triple = one(&table(), set("v100", &[a.clone(), b.clone(), c]));
    assert_eq!(slowdowns(&triple), [1.8, 1.6, 2.1]);
    assert_eq!(one(&table(), set("v100", &[a.clone(), d.clone()]))[0].fits, 0.0);
    let unknown = one(&table(), set("v100", &[a, b, d]));
    assert!(unknown.iter().all(|member| member.uncertainty == UNKNOWN_UNCERTAINTY));
}

#[test]
fn sets_with_another_way_of_sharing_are_other_sets() {
    let pair = |sharing| {
        let members = vec![member("a", Some(0.4)), member("b", Some(0.4))];
        ColocationSet { gpu: GpuKind::named("h200"), sharing, members }
    };
    let table = MeasuredTable::of(&[ran(pair(Some(SharingStrategy::Mps)), &[1.1, 1.2])]);
    assert_eq!(slowdowns(&one(&table, pair(Some(SharingStrategy::Mps)))), [1.1, 1.2]);
    let other = one(&table, pair(Some(SharingStrategy::TimeSliced)));
    assert_eq!(other[0].uncertainty, UNKNOWN_UNCERTAINTY);
}

/// Up to five members, known well or hardly at all.
#[test]
fn measurements_without_a_way_of_sharing_stand_for_any() {
    let pair = |sharing| ColocationSet { sharing, ..set("v100", &[member("a", None), member("b", None)]) };
    let table = MeasuredTable::of(&[ran(pair(None), &[1.1, 1.2])]);
    assert_eq!(slowdowns(&one(&table, pair(Some(SharingStrategy::Mps)))), [1.1, 1.2]);
}

fn any_set() -> impl Strategy<Value = ColocationSet> {
    let busy = prop_oneof![Just(None), (0.0..1.0_f64).prop_map(Some)];
    let model = prop_oneof![Just("a"), Just("b"), Just("x")];
    let member = (model, busy).prop_map(|(model, busy)| member(model, busy));
    let gpu = prop_oneof![Just("v100"), Just("unheard of")];
    (gpu, prop::collection::vec(member, 0..5)).prop_map(|(gpu, members)| set(gpu, &members))
}

proptest! {
    #[test]
    fn every_set_has_an_answer_that_does_not_depend_on_the_order(asked in any_set()) {
        let table = table();
        let law = AnalyticInterference::<MaxMinSharing>::default();
        for model in [&law as &dyn Interference, &table] {
            let estimates = one(model, asked.clone());
            prop_assert_eq!(estimates.len(), asked.members.len());
            for member in &estimates {
                prop_assert!(member.slowdown >= 1.0, "{:?}", member);
                prop_assert!((0.0..=UNKNOWN_UNCERTAINTY).contains(&member.uncertainty), "{:?}", member);
                prop_assert!(estimates.len() != 1 || member.slowdown == 1.0);
            }
            let mut turned = asked.clone();
            turned.members.reverse();
            let mut back = one(model, turned);
            back.reverse();
            for (one, other) in estimates.iter().zip(&back) {
                prop_assert!((one.slowdown - other.slowdown).abs() < 1e-9, "{:?} {:?}", estimates, back);
            }
        }
    }
}
