//! Where multi-stage interference places jobs, and how often the predictor is asked.

use std::sync::{Arc, Mutex};

use cohabit_types::{Bytes, Span};

use crate::interference::{
    AnalyticInterference, ColocationEstimate, ColocationSet, Interference, InterferenceContext,
    MaxMinSharing, PredictionCache,
};
use crate::sharing::multi_stage::{ContentionDegree, MultiStageEstimate, estimate_all};
use crate::sharing::{FreeDevice, Jobs};
use crate::tests::colocated::{context, placed_on, plan_of, runs, training};
use crate::tests::kit::{node, view};
use crate::{Action, FreeNodes, PendingJob, View, parse_policy_with};

fn known() -> InterferenceContext {
    context("test GPU", &[("heavy", 0.94), ("middling", 0.5), ("light", 0.1), ("shuffle", 0.95)])
}

/// What is expected of a newcomer on each device that it fits.
fn estimate_newcomer(
    view: &View,
    newcomer: &PendingJob,
    contention: ContentionDegree,
) -> Vec<MultiStageEstimate> {
    let context = known();
    let mut jobs = Jobs::new(context.solos.clone());
    jobs.learn(view.now, &view.as_changes());
    jobs.insert_if_unknown(newcomer);
    let free = FreeNodes::new(&view.nodes);
    let devices = FreeDevice::all(&newcomer.demand, &free);
    estimate_all(
        newcomer.id,
        &devices,
        &mut jobs,
        &mut PredictionCache::new(context.interference),
        contention,
    )
}

/// Devices on one node, each with residents that run for so long.
fn neighbors(devices: &[&[(&str, u64)]]) -> View {
    let mut view = view(vec![node(1, &vec![1_000; devices.len()])], vec![]);
    for (device, jobs) in devices.iter().enumerate() {
        for (place, (model, secs)) in jobs.iter().enumerate() {
            let number = 100 * (device as u64 + 1) + place as u64;
            runs(&mut view, training(number, model, 10_000), 0, device, *secs);
        }
    }
    view
}

fn chosen(policy: &str, view: &View, newcomer: PendingJob) -> (usize, usize) {
    let mut view = view.clone();
    view.pending.insert(newcomer.id, newcomer);
    let (_, node, device) = placed_on(&view, &plan_of(policy, &known(), &view))[0];
    (node, device)
}

/// Published: two jobs of about a quarter of an hour each, one of which starts later.
#[test]
fn the_later_a_job_starts_beside_another_the_sooner_it_ends() {
    const PUBLISHED: [(u64, f64); 6] =
        [(0, 2_092.0), (200, 1_982.0), (400, 1_748.0), (600, 1_528.0), (800, 1_315.0), (1_000, 1_122.0)];
    let newcomer = training(1, "shuffle", 1_048);
    let mut before =
        MultiStageEstimate { interference: f64::MAX, slowdown: f64::MAX, neighbors: 1, fits: true };
    for (later, published) in PUBLISHED {
        let estimate = estimate_newcomer(
            &neighbors(&[&[("heavy", 1_080 - later)]]),
            &newcomer,
            ContentionDegree::default(),
        )[0];
        let takes = estimate.slowdown * 1_048.0;
        assert!((takes / published - 1.0).abs() < 0.04, "{later} s later: {takes} instead of {published}");
        assert!(estimate.slowdown < before.slowdown, "{later} s later");
        before = estimate;
    }
}

#[test]
fn an_idle_gpu_wins_except_over_light_neighbors_with_more_free_memory() {
    let view = neighbors(&[&[("heavy", 100)], &[]]);
    for policy in ["isacpp", "isacpp:rcd=sum", "isacpp:as-released=off"] {
        assert_eq!(chosen(policy, &view, training(1, "heavy", 100)), (0, 1), "{policy}");
    }
    let mut roomy = neighbors(&[&[("light", 100)], &[]]);
    roomy.nodes[0].devices[1].memory_free = Some(Bytes(10 << 30));
    assert_eq!(chosen("isacpp", &roomy, training(1, "light", 100)), (0, 0));
    assert_eq!(chosen("isacpp:rcd=sum", &roomy, training(1, "light", 100)), (0, 1));
}

#[test]
fn of_equal_gpus_the_one_with_more_memory_then_the_faster_then_the_first_is_taken() {
    let mut view = view(vec![node(1, &[1_000; 3])], vec![]);
    assert_eq!(chosen("isacpp", &view, training(1, "light", 100)), (0, 0));
    view.nodes[0].devices[0].model = "K80".into();
    assert_eq!(chosen("isacpp", &view, training(1, "light", 100)), (0, 1));
    view.nodes[0].devices[2].memory_free = Some(Bytes(81 << 30));
    assert_eq!(chosen("isacpp", &view, training(1, "light", 100)), (0, 2));
}

#[test]
fn the_lighter_neighbor_is_better_and_of_equal_ones_the_one_that_ends_sooner() {
    let lighter = neighbors(&[&[("heavy", 1_000)], &[("middling", 1_000)]]);
    assert_eq!(chosen("isacpp", &lighter, training(1, "heavy", 1_000)), (0, 1));
    let sooner = neighbors(&[&[("heavy", 1_000)], &[("heavy", 500)]]);
    assert_eq!(chosen("isacpp", &sooner, training(1, "heavy", 1_000)), (0, 1));
}

#[test]
fn both_readings_of_contention_rank_occupied_gpus_alike() {
    let view = neighbors(&[
        &[("heavy", 1_000)],
        &[("light", 50), ("middling", 500)],
        &[("middling", 2_000)],
        &[("middling", 300), ("middling", 300)],
    ]);
    let order = |contention| {
        let estimates = estimate_newcomer(&view, &training(1, "middling", 1_000), contention);
        let mut order: Vec<usize> = (0..estimates.len()).collect();
        order.sort_by(|a, b| estimates[*a].interference.total_cmp(&estimates[*b].interference));
        order.into_iter().next()
    };
    assert_eq!(order(ContentionDegree::Sum), order(ContentionDegree::MeanMinusOne));
}

#[test]
fn the_work_left_of_a_neighbor_follows_from_its_present_speed() {
    let two = neighbors(&[&[("heavy", 1_000), ("heavy", 1_000)]]);
    let one = neighbors(&[&[("heavy", 1_000)]]);
    let slowdown = |view: &View| {
        estimate_newcomer(view, &training(1, "light", 1), ContentionDegree::default())[0].slowdown
    };
    assert!(slowdown(&two) > slowdown(&one));
    // Two jobs that slow each other down by half have half of the time left alone: for a long newcomer they
    // are gone no later than their work allows.
    let takes = estimate_newcomer(&two, &training(1, "heavy", 10_000), ContentionDegree::default())[0]
        .slowdown
        * 10_000.0;
    assert!((takes - 11_000.0).abs() < 150.0, "{takes}");
}

#[test]
fn released_code_takes_the_node_whose_worst_gpu_is_best_and_there_the_first() {
    let mut view = view(vec![node(1, &[1_000; 2]), node(2, &[1_000; 2])], vec![]);
    runs(&mut view, training(101, "heavy", 1_000), 0, 1, 500);
    runs(&mut view, training(102, "middling", 1_000), 1, 0, 500);
    runs(&mut view, training(103, "light", 1_000), 1, 1, 500);
    assert_eq!(chosen("isacpp", &view, training(1, "heavy", 1_000)), (0, 0));
    assert_eq!(chosen("isacpp:as-released=on", &view, training(1, "heavy", 1_000)), (1, 0));
}

#[test]
fn with_a_weight_on_speed_a_slow_idle_gpu_loses_to_a_fast_shared_one() {
    let mut view = neighbors(&[&[], &[("light", 1_000)]]);
    view.nodes[0].devices[0].model = "K80".into();
    view.nodes[0].devices[1].model = "H100".into();
    assert_eq!(chosen("isacpp", &view, training(1, "heavy", 1_000)), (0, 0));
    assert_eq!(chosen("isacpp:speed-weight=1", &view, training(1, "heavy", 1_000)), (0, 1));
}

/// The analytic model, but no job fits beside a heavy one.
#[derive(Debug, Default)]
struct Tight {
    questions: Mutex<Vec<usize>>,
}

impl Interference for Tight {
    fn predict(&self, sets: &[ColocationSet]) -> Vec<Vec<ColocationEstimate>> {
        self.questions.lock().unwrap().push(sets.len());
        let mut estimates = AnalyticInterference::<MaxMinSharing>::default().predict(sets);
        for (set, estimates) in sets.iter().zip(&mut estimates) {
            let fits = if set.members.iter().any(|it| it.model == "heavy") { 0.1 } else { 1.0 };
            estimates.iter_mut().for_each(|it| it.fits = fits);
        }
        estimates
    }
}

#[test]
fn a_gpu_whose_memory_probably_does_not_fit_is_chosen_last_with_a_reason() {
    let context = InterferenceContext { interference: Arc::new(Tight::default()), ..known() };
    let place_light = |devices: &[&[(&'static str, u64)]]| {
        let mut view = neighbors(devices);
        view.pending.insert(training(1, "light", 100).id, training(1, "light", 100));
        let plan = plan_of("isacpp", &context, &view);
        let Action::Place { why, .. } = &plan.actions[0] else { panic!("{plan:?}") };
        (placed_on(&view, &plan)[0].2, why.clone())
    };
    let middling: &[(&str, u64)] = &[("middling", 9_000), ("middling", 9_000)];
    assert_eq!(place_light(&[&[("heavy", 1)], middling]).0, 1);
    let (_, why) = place_light(&[&[("heavy", 100)]]);
    assert!(why.starts_with("shares a GPU with 1 job, the best of 1 with room: interference 0."), "{why}");
    assert!(why.ends_with("their memory may not fit"), "{why}");
}

#[test]
fn each_stage_is_one_query_for_all_gpus_and_none_is_repeated() {
    let predictor = Arc::new(Tight::default());
    let context = InterferenceContext { interference: predictor.clone(), ..known() };
    let mut policy = parse_policy_with("isacpp", &context).unwrap();
    let mut view = neighbors(&[
        &[("light", 50), ("middling", 500)],
        &[("middling", 50), ("middling", 600)],
        &[("light", 70)],
    ]);
    view.pending.insert(training(1, "light", 1_000).id, training(1, "light", 1_000));
    policy.learn(&view, &view.as_changes());
    let plan = policy.plan(&view);
    // The speed of the two pairs that run, then three sets, then the two that are left with one resident;
    // both are a light job beside a middling one, known from the first question.
    assert_eq!(*predictor.questions.lock().unwrap(), [2, 3]);
    assert_eq!(policy.plan(&view), plan);
    assert_eq!(predictor.questions.lock().unwrap().len(), 2);
}

#[test]
fn a_job_that_shares_has_a_longer_expected_runtime_and_a_reason() {
    let mut view = neighbors(&[&[("heavy", 10_000)]]);
    view.pending.insert(training(1, "heavy", 1_000).id, training(1, "heavy", 1_000));
    let plan = plan_of("isacpp", &known(), &view);
    let [Action::Place { runtime: Some(runtime), why, .. }] = &plan.actions[..] else { panic!("{plan:?}") };
    let about_twice = Span::from_secs(1_900)..Span::from_secs(2_100);
    assert!(about_twice.contains(runtime), "{runtime:?}");
    assert!(why.contains("expected slowdown 1.98"), "{why}");
}

#[test]
fn jobs_that_start_in_a_plan_are_neighbors_of_later_ones() {
    let mut view = view(vec![node(1, &[1_000; 2])], vec![]);
    for number in 1..=3 {
        let model = if number == 1 { "light" } else { "heavy" };
        view.pending.insert(training(number, model, 1_000).id, training(number, model, 1_000));
    }
    let plan = plan_of("isacpp", &known(), &view);
    assert_eq!(placed_on(&view, &plan), [(1, 0, 0), (2, 0, 1), (3, 0, 0)]);
}
