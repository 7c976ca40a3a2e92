//! Which jobs the simple choosers put together.

use cohabit_types::{Bytes, ReasonCode, Share};

use crate::interference::InterferenceContext;
use crate::tests::colocated::{context, placed_on, plan_of, runs, training};
use crate::tests::kit::{gpus, job, node, view};
use crate::{PendingJob, View, parse_policy_with};

const SHARING: [&str; 5] = ["first-fit-sharing", "least-loaded", "horus", "util-threshold", "isacpp"];

fn known() -> InterferenceContext {
    context("test GPU", &[("heavy", 0.9), ("middling", 0.5), ("light", 0.1)])
}

/// Two GPUs with one job each, and an idle one; memory never runs out.
fn occupied(first: &str, second: &str) -> View {
    let mut view = view(vec![node(1, &[1_000, 1_000]), node(2, &[1_000])], vec![]);
    runs(&mut view, training(101, first, 1_000), 0, 0, 500);
    runs(&mut view, training(102, second, 1_000), 0, 1, 500);
    view
}

fn with(mut view: View, jobs: Vec<PendingJob>) -> View {
    view.pending = jobs.into_iter().map(|job| (job.id, job)).collect();
    view
}

fn placed(policy: &str, view: &View) -> Vec<(u64, usize, usize)> {
    placed_on(view, &plan_of(policy, &known(), view))
}

#[test]
fn first_fit_takes_the_first_device_whatever_runs_on_it() {
    let view = with(occupied("heavy", "light"), vec![training(1, "heavy", 100)]);
    assert_eq!(placed("first-fit-sharing", &view), [(1, 0, 0)]);
}

#[test]
fn least_loaded_spreads_jobs_and_counts_those_that_start_in_the_same_plan() {
    let jobs = (1..=4).map(|number| training(number, "light", 100)).collect();
    let view = with(occupied("heavy", "light"), jobs);
    assert_eq!(placed("least-loaded", &view), [(1, 1, 0), (2, 0, 0), (3, 0, 1), (4, 1, 0)]);
}

#[test]
fn least_loaded_takes_the_freer_device_of_those_with_equally_many_neighbors() {
    let mut view = occupied("heavy", "light");
    view.nodes[0].devices[0].free = Share(500);
    view.nodes.truncate(1);
    assert_eq!(placed("least-loaded", &with(view, vec![training(1, "light", 100)])), [(1, 0, 1)]);
}

#[test]
fn horus_takes_the_device_that_is_least_busy_with_the_newcomer() {
    let mut view = occupied("heavy", "light");
    let jobs = |model| (1..=2).map(|number| training(number, model, 100)).collect();
    assert_eq!(placed("horus", &with(view.clone(), jobs("middling"))), [(1, 1, 0), (2, 0, 1)]);
    view.nodes.truncate(1);
    assert_eq!(placed("horus", &with(view, jobs("heavy"))), [(1, 0, 1), (2, 0, 0)]);
}

#[test]
fn an_unmeasured_job_keeps_a_device_as_busy_as_its_share() {
    let beside = |known: &'static str| {
        let mut view = occupied(known, "never seen");
        view.nodes.truncate(1);
        placed("horus", &with(view, vec![training(1, "light", 100)]))
    };
    assert_eq!(beside("middling"), [(1, 0, 1)]);
    assert_eq!(beside("light"), [(1, 0, 0)]);
}

#[test]
fn a_threshold_fills_devices_as_far_as_it_allows() {
    let view = |newcomer| with(occupied("middling", "light"), vec![training(1, newcomer, 100)]);
    assert_eq!(placed("util-threshold", &view("light")), [(1, 0, 0)]);
    assert_eq!(placed("util-threshold", &view("heavy")), [(1, 0, 1)]);
    assert_eq!(placed("util-threshold:threshold=0.9", &view("heavy")), [(1, 1, 0)]);
}

#[test]
fn a_job_that_would_make_every_device_too_busy_waits_and_others_of_its_class_pass() {
    let mut view = occupied("heavy", "heavy");
    view.nodes.truncate(1);
    let view = with(view, vec![training(1, "middling", 100), training(2, "light", 100)]);
    assert_eq!(placed("util-threshold", &view), [(2, 0, 0)]);
    let mut policy = parse_policy_with("util-threshold:threshold=0.95", &known()).unwrap();
    policy.learn(&view, &view.as_changes());
    let pending = policy.explain_pending(&view).remove(0);
    assert_eq!(pending.code, ReasonCode::WaitingForDevices);
    assert_eq!(
        pending.why,
        "would make every GPU with room busier than the limit of 95 %. First in the queue"
    );
}

#[test]
fn whole_devices_follow_the_mapper_with_every_chooser() {
    let mut nodes = vec![node(1, &[1_000; 4]), node(2, &[1_000; 2])];
    nodes[1].devices[0].memory_free = Some(Bytes(79 << 30));
    let view = view(nodes, vec![job(1, gpus(2))]);
    for policy in SHARING {
        assert_eq!(placed(policy, &view), [(1, 1, 0)], "{policy}");
    }
}

#[test]
fn no_chooser_joins_a_device_that_does_not_fit() {
    let mut view = occupied("light", "light");
    view.nodes[0].devices[0].sharing.ranks_free = Some(0);
    view.nodes[0].devices[1].memory_free = Some(Bytes(1 << 29));
    view.nodes.truncate(1);
    let view = with(view, vec![training(1, "light", 100)]);
    for policy in SHARING {
        assert_eq!(placed(policy, &view), [], "{policy}");
    }
}
