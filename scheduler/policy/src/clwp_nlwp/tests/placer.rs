//! Where jobs go that share a device, and how often the predictor is asked.

use std::sync::Arc;

use cohabit_types::{Slowdown, Span};

use super::{Metrics, knows};
use crate::interference::InterferenceContext;
use crate::tests::colocated::{context, placed_on, plan_of, runs, training};
use crate::tests::kit::{node, view};
use crate::{Action, PendingJob, View, parse_policy_with};

/// Nodes with two devices each, and the jobs on them.
fn nodes(devices: &[[&[&str]; 2]]) -> View {
    let hosts = (1..).zip(devices).map(|(number, _)| node(number, &[1_000; 2])).collect();
    let mut view = view(hosts, vec![]);
    let mut number = 100;
    for (node, devices) in devices.iter().enumerate() {
        for (device, models) in devices.iter().enumerate() {
            for model in *models {
                number += 1;
                runs(&mut view, training(number, model, 1_000), node, device, 500);
            }
        }
    }
    view
}

fn with(mut view: View, newcomer: PendingJob) -> View {
    view.pending.insert(newcomer.id, newcomer);
    view
}

fn chosen(policy: &str, context: &InterferenceContext, view: &View, model: &str) -> (usize, usize) {
    let view = with(view.clone(), training(1, model, 1_000));
    let (_, node, device) = placed_on(&view, &plan_of(policy, context, &view))[0];
    (node, device)
}

#[test]
fn the_node_with_the_least_similar_jobs_is_chosen() {
    let rows = [("light", [0.0, 1.0]), ("middling", [1.0, 0.1]), ("shuffle", [0.1, 1.0])];
    let (_, context) = knows(Metrics::of(rows));
    let view = nodes(&[[&["shuffle"], &["shuffle"]], [&["middling"], &["middling"]]]);
    assert_eq!(chosen("clwp-nlwp", &context, &view, "light"), (1, 0));
    // A similar job that uses less is preferred where only utilization counts.
    assert_eq!(chosen("clwp-nlwp:mu=1000", &context, &view, "light"), (0, 0));
}

#[test]
fn cosine_and_load_disagree_about_tiny_jobs_that_use_the_same_resources() {
    let rows = [("light", [0.1, 0.0]), ("shuffle", [0.1, 0.0]), ("heavy", [0.5, 0.9])];
    let (_, context) = knows(Metrics::of(rows));
    let view = nodes(&[[&["shuffle"], &["shuffle"]], [&["heavy"], &["heavy"]]]);
    assert_eq!(chosen("clwp-nlwp:mu=0", &context, &view, "light"), (1, 0));
    assert_eq!(chosen("clwp-nlwp:mu=0,similarity=load", &context, &view, "light"), (0, 0));
}

#[test]
fn without_completed_rows_jobs_are_compared_by_what_is_known_of_them_alone() {
    let by_law = context("test GPU", &[("heavy", 0.94), ("light", 0.1)]);
    let view = nodes(&[[&["heavy"], &["heavy"]], [&["light"], &["light"]]]);
    assert_eq!(chosen("clwp-nlwp", &by_law, &view, "heavy"), (1, 0));
    assert_eq!(chosen("clwp-nlwp:mu=0", &by_law, &view, "light"), (0, 0));
}

#[test]
fn on_the_node_the_gpu_is_chosen_on_which_least_time_is_lost() {
    let (_, context) = knows(Metrics::default());
    let view = nodes(&[[&["heavy"], &["shuffle"]]]);
    assert_eq!(chosen("clwp-nlwp", &context, &view, "heavy"), (0, 1));
    assert_eq!(chosen("clwp-nlwp", &context, &nodes(&[[&["light"], &[]]]), "heavy"), (0, 1));
}

/// Beside a middling job, a heavy one loses more than beside a light one; but there the light one would lose
/// more, with its iterations of a minute.
#[test]
fn weights_decide_which_time_counts() {
    let (_, context) = knows(Metrics::default());
    let mut view = nodes(&[[&["middling"], &[]]]);
    let mut slow = training(200, "shuffle", 1_000);
    let estimate = Arc::make_mut(&mut slow.traits).estimate.as_mut().unwrap();
    estimate.iterations = Some(17);
    runs(&mut view, slow, 0, 1, 500);
    assert_eq!(chosen("clwp-nlwp:hurt=0", &context, &view, "heavy"), (0, 1));
    assert_eq!(chosen("clwp-nlwp", &context, &view, "heavy"), (0, 0));
    assert_eq!(chosen("clwp-nlwp:own=1000", &context, &view, "heavy"), (0, 1));
}

#[test]
fn the_proposal_contains_the_predicted_slowdown() {
    let (_, context) = knows(Metrics::default());
    let view = with(nodes(&[[&["shuffle"], &["shuffle"]]]), training(1, "heavy", 1_000));
    let plan = plan_of("clwp-nlwp", &context, &view);
    let [Action::Place { slowdown, runtime, why, .. }] = &plan.actions[..] else { panic!("{plan:?}") };
    assert_eq!(
        (*slowdown, runtime.map(Span::as_secs_f64).map(f64::round)),
        (Some(Slowdown(1_397)), Some(1_397.0))
    );
    assert_eq!(
        why,
        "shares a GPU with 1 job, on the best of 1 node with room: cost 1.06, expected slowdown 1.40"
    );
}

#[test]
fn where_memory_probably_does_not_fit_another_gpu_and_then_another_node_is_tried() {
    let rows = [("light", [0.0, 1.0]), ("heavy", [1.0, 0.0]), ("middling", [0.5, 0.5])];
    let huge = || Metrics { huge: vec!["heavy"], ..Metrics::of(rows) };
    let (asked, context) = knows(huge());
    let only_huge: [&[&str]; 2] = [&["heavy"], &["heavy"]];
    let view = nodes(&[[&["middling"], &["middling"]], only_huge]);
    assert_eq!(chosen("clwp-nlwp:mu=0", &context, &view, "light"), (0, 0));
    assert_eq!(*asked.predicted.lock().unwrap(), [1, 1], "a question for each node that was tried");
    let (_, context) = knows(huge());
    let view = nodes(&[[&["heavy"], &["middling"]], [&["light"], &["light"]]]);
    assert_eq!(chosen("clwp-nlwp:mu=0", &context, &view, "light"), (0, 1));
    let (_, context) = knows(huge());
    let view = with(nodes(&[only_huge]), training(1, "light", 1_000));
    let plan = plan_of("clwp-nlwp", &context, &view);
    let [Action::Place { why, .. }] = &plan.actions[..] else { panic!("who has room does not wait") };
    assert!(why.ends_with("their memory may not fit"), "{why}");
}

#[test]
fn all_rows_are_one_query_the_chosen_node_another_and_none_is_repeated() {
    let (asked, context) = knows(Metrics::of([("light", [0.0, 1.0]), ("heavy", [1.0, 0.0])]));
    let mut policy = parse_policy_with("clwp-nlwp", &context).unwrap();
    let view = with(
        nodes(&[[&["middling"], &["heavy", "shuffle"]], [&["middling"], &["middling"]]]),
        training(1, "light", 1_000),
    );
    policy.learn(&view, &view.as_changes());
    let plan = policy.plan(&view);
    let questions = || (asked.completed.lock().unwrap().clone(), asked.predicted.lock().unwrap().clone());
    // Five neighbors and the newcomer; on the first node three sets of more than one job.
    assert_eq!(questions(), (vec![6], vec![3]));
    assert_eq!(policy.plan(&view), plan);
    assert_eq!(questions(), (vec![6], vec![3]));
    policy.set_interference(&context);
    assert_eq!(policy.plan(&view), plan);
    assert_eq!(questions(), (vec![6, 6], vec![3, 3]), "new knowledge is asked anew");
}

#[test]
fn jobs_that_start_in_a_plan_are_neighbors_of_later_ones() {
    let (_, context) = knows(Metrics::default());
    let jobs = (1..=4).map(|number| training(number, "heavy", 1_000)).collect();
    let view = view(vec![node(1, &[1_000; 2]), node(2, &[1_000; 2])], jobs);
    let plan = plan_of("clwp-nlwp", &context, &view);
    assert_eq!(placed_on(&view, &plan), [(1, 0, 0), (2, 1, 0), (3, 0, 1), (4, 1, 1)]);
}
