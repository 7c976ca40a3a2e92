//! Which jobs the hybrid puts together, for which it keeps devices, which wait and why, and which are
//! separated.

use std::sync::{Arc, Mutex};

use cohabit_types::{GpuRequest, JobId, LaunchMode, ReasonCode, Slowdown, Span, Time};

use crate::interference::{
    AnalyticInterference, ColocationEstimate, ColocationSet, Interference, InterferenceContext,
    MaxMinSharing, UNKNOWN_UNCERTAINTY,
};
use crate::tests::colocated::{context, placed_on, runs, training};
use crate::tests::kit::{gpus, job, node, view};
use crate::{
    Action, EndedRun, JobFeatures, PendingJob, PendingReason, Plan, Policy, View, ViewChange,
    parse_policy_with,
};

fn known() -> InterferenceContext {
    let known = context("test GPU", &[("heavy", 0.94), ("middling", 0.6), ("light", 0.1)]);
    InterferenceContext { max_slowdown: Some(Slowdown(1_300)), ..known }
}

/// Any slowdown is allowed that somebody gains by.
fn unlimited() -> InterferenceContext {
    InterferenceContext { max_slowdown: None, ..known() }
}

/// Reports of running jobs are believed from then on.
const NOW: Time = Time::from_micros(1_000_000_000);

/// Devices on one node, each with residents that run for so long at their present speed.
fn neighbors(devices: &[&[(&str, u64)]]) -> View {
    let mut view = view(vec![node(1, &vec![1_000; devices.len()])], vec![]);
    view.now = NOW;
    for (device, jobs) in devices.iter().enumerate() {
        for (place, (model, secs)) in jobs.iter().enumerate() {
            let number = 100 * (device as u64 + 1) + place as u64;
            runs(&mut view, training(number, model, *secs), 0, device, *secs);
        }
    }
    view
}

/// The jobs wait too. They are of another user than those that run, so that runs of one say nothing of the
/// other's.
fn with(mut view: View, jobs: Vec<PendingJob>) -> View {
    for mut job in jobs {
        Arc::make_mut(&mut job.traits).user = "bob".into();
        view.pending.insert(job.id, job);
    }
    view
}

/// Enough runs of this job that its run time is known.
fn runs_of(job: &PendingJob) -> Vec<EndedRun> {
    let traits = &job.traits;
    let features = JobFeatures {
        user: traits.user.clone(),
        model: traits.model.as_ref().and_then(|model| model.name.clone()),
        devices_milli: job.demand.total_milli(),
        ..JobFeatures::default()
    };
    let worked = traits.estimate.as_ref().and_then(|it| it.runtime).unwrap_or_default();
    vec![EndedRun { features, worked, estimated: None }; 30]
}

/// No job is stopped for another, and slowdowns are limited alone, so that only placements are decided.
const AT_ONCE: &str = "hybrid:preempt=off,later=1000";

fn policy(text: &str, context: &InterferenceContext, view: &View) -> Box<dyn Policy> {
    let mut policy = parse_policy_with(text, context).unwrap();
    view.pending.values().for_each(|job| policy.recall(&runs_of(job)));
    policy.learn(view, &view.as_changes());
    policy
}

fn plan(context: &InterferenceContext, view: &View) -> Plan {
    policy(AT_ONCE, context, view).plan(view)
}

fn placed(context: &InterferenceContext, view: &View) -> Vec<(u64, usize, usize)> {
    placed_on(view, &plan(context, view))
}

fn explain_pending_with(view: &View, context: &InterferenceContext) -> Vec<PendingReason> {
    policy(AT_ONCE, context, view).explain_pending(view)
}

fn bounded(mut job: PendingJob, most: f64) -> PendingJob {
    job.demand.max_slowdown = Some(Slowdown::from(most));
    job
}

#[test]
fn an_idle_gpu_is_preferred_to_neighbors_that_cost_something() {
    let view = neighbors(&[&[("middling", 1_000)], &[]]);
    assert_eq!(placed(&known(), &with(view, vec![training(1, "middling", 100)])), [(1, 0, 1)]);
}

#[test]
fn the_gpu_is_shared_on_which_all_jobs_end_soonest() {
    let lighter = neighbors(&[&[("middling", 1_000)], &[("light", 1_000)]]);
    assert_eq!(placed(&known(), &with(lighter, vec![training(1, "middling", 100)])), [(1, 0, 1)]);
    let sooner = neighbors(&[&[("middling", 1_000)], &[("middling", 20)]]);
    assert_eq!(placed(&known(), &with(sooner, vec![training(1, "middling", 1_000)])), [(1, 0, 1)]);
}

#[test]
fn no_gpu_is_shared_where_a_slowdown_would_exceed_a_limit() {
    let view = with(neighbors(&[&[("heavy", 100_000)]]), vec![training(1, "heavy", 100)]);
    assert_eq!(placed(&known(), &view), []);
    let reason = explain_pending_with(&view, &known()).remove(0);
    assert_eq!(reason.code, ReasonCode::WaitingForDevices);
    assert_eq!(
        reason.why,
        "cannot join the jobs on the only GPU with room: its slowdown could reach 1.979, and 1.3 is allowed. \
         First in the queue. The order assumes 1 min 24 s of work left, from 30 jobs like it"
    );
}

#[test]
fn each_job_may_have_a_limit_of_its_own() {
    let mut view = neighbors(&[&[]]);
    runs(&mut view, bounded(training(100, "middling", 1_000), 1.1), 0, 0, 1_000);
    let strict = with(view, vec![bounded(training(1, "middling", 100), 3.0)]);
    assert_eq!(placed(&known(), &strict), []);
    let why = explain_pending_with(&strict, &known()).remove(0).why;
    assert!(why.contains("the slowdown of job 100 could reach 1.263"), "{why}");
    let mut view = neighbors(&[&[]]);
    runs(&mut view, bounded(training(100, "middling", 1_000), 3.0), 0, 0, 1_000);
    let lenient = with(view, vec![bounded(training(1, "middling", 100), 3.0)]);
    assert_eq!(placed(&known(), &lenient), [(1, 0, 0)]);
}

#[test]
fn the_limit_of_the_cluster_counts_for_jobs_without_one() {
    let view = with(neighbors(&[&[("heavy", 1_000)]]), vec![training(1, "heavy", 100)]);
    let lenient = InterferenceContext { max_slowdown: Some(Slowdown(2_500)), ..known() };
    assert_eq!(placed(&lenient, &view), [(1, 0, 0)]);
    let mut strict = policy(AT_ONCE, &known(), &view);
    assert_eq!(strict.plan(&view).actions, []);
    strict.set_interference(&lenient);
    assert_eq!(placed_on(&view, &strict.plan(&view)), [(1, 0, 0)]);
}

#[test]
fn jobs_with_one_demand_and_different_workloads_do_not_hold_each_other_back() {
    let jobs = vec![training(1, "heavy", 100), training(2, "light", 100), training(3, "heavy", 100)];
    let view = with(neighbors(&[&[("heavy", 100_000)], &[("light", 100_000)]]), jobs);
    let plan = plan(&known(), &view);
    assert_eq!(placed_on(&view, &plan), [(1, 0, 1), (2, 0, 0)]);
}

#[test]
fn jobs_that_start_in_a_plan_are_neighbors_of_later_ones() {
    let jobs = vec![training(1, "heavy", 100), training(2, "heavy", 200), training(3, "light", 300)];
    let view = with(neighbors(&[&[]]), jobs);
    assert_eq!(placed(&known(), &view), [(1, 0, 0), (3, 0, 0)]);
}

#[test]
fn without_sharing_every_job_has_a_gpu_of_its_own() {
    let jobs = vec![training(1, "light", 100), training(2, "light", 100)];
    let view = with(neighbors(&[&[("light", 1_000)], &[]]), jobs);
    let mut policy = policy("hybrid:sharing=off,preempt=off", &known(), &view);
    assert_eq!(placed_on(&view, &policy.plan(&view)), [(1, 0, 1)]);
    let mut full = view.clone();
    full.nodes[0].devices.truncate(1);
    policy.learn(&full, &full.as_changes());
    let why = policy.explain_pending(&full).remove(0).why;
    assert!(why.contains("because the policy does not share GPUs"), "{why}");
}

/// The analytic model with these uncertainties for every set, and with this probability that one fits.
#[derive(Debug)]
struct Doubting {
    uncertainty: f64,
    fits: f64,
}

impl Interference for Doubting {
    fn predict(&self, sets: &[ColocationSet]) -> Vec<Vec<ColocationEstimate>> {
        let mut estimates = AnalyticInterference::<MaxMinSharing>::default().predict(sets);
        for estimate in estimates.iter_mut().flatten() {
            (estimate.uncertainty, estimate.fits) = (self.uncertainty, self.fits);
        }
        estimates
    }
}

fn doubting(uncertainty: f64, fits: f64) -> InterferenceContext {
    InterferenceContext { interference: Arc::new(Doubting { uncertainty, fits }), ..known() }
}

#[test]
fn uncertainty_counts_but_an_unknown_set_is_tried() {
    let bound = |most| bounded(training(1, "middling", 100), most);
    let starts = |uncertainty, most| {
        let mut view = neighbors(&[&[]]);
        runs(&mut view, bounded(training(100, "middling", 1_000), 9.0), 0, 0, 1_000);
        let plan = plan(&doubting(uncertainty, 1.0), &with(view, vec![bound(most)]));
        plan.actions.into_iter().next().map(|action| match action {
            Action::Place { why, .. } => why,
            Action::Preempt { .. }
            | Action::Reclaim { .. }
            | Action::StopIdle { .. }
            | Action::Allot { .. } => {
                panic!("no job is stopped or changed")
            }
        })
    };
    assert!(starts(0.1, 1.35).is_some());
    assert!(starts(0.3, 1.35).is_none());
    let tried = starts(UNKNOWN_UNCERTAINTY, 1.35).unwrap();
    assert!(tried.ends_with("nothing is known yet about such jobs together"), "{tried}");
    let known_to_harm = neighbors(&[&[("heavy", 1_000)]]);
    let view = with(known_to_harm, vec![training(1, "heavy", 100)]);
    assert_eq!(placed(&doubting(UNKNOWN_UNCERTAINTY, 1.0), &view), [], "not against all that is probable");
}

#[test]
fn an_unknown_set_is_never_preferred_to_an_idle_gpu() {
    let view = with(neighbors(&[&[("light", 1_000)], &[]]), vec![training(1, "light", 100)]);
    assert_eq!(placed(&doubting(UNKNOWN_UNCERTAINTY, 1.0), &view), [(1, 0, 1)]);
}

#[test]
fn no_gpu_is_shared_where_memory_probably_does_not_fit() {
    let view = with(neighbors(&[&[("light", 1_000)]]), vec![training(1, "light", 100)]);
    assert_eq!(placed(&doubting(0.0, 0.4), &view), []);
    let why = explain_pending_with(&view, &doubting(0.0, 0.4)).remove(0).why;
    assert!(why.contains("their memory would probably not fit"), "{why}");
}

#[test]
fn a_job_waits_for_a_gpu_on_which_it_would_end_sooner_but_not_for_long() {
    let lenient = InterferenceContext { max_slowdown: Some(Slowdown(2_500)), ..known() };
    let mut view = with(neighbors(&[&[("heavy", 4_000)], &[("heavy", 50)]]), vec![]);
    view.nodes[0].devices[1].sharing.ranks_free = Some(0);
    let mut newcomer = training(1, "heavy", 1_000);
    (newcomer.submitted_at, newcomer.eligible_at) = (view.now, view.now);
    let mut view = with(view, vec![newcomer]);
    let mut policy = policy(AT_ONCE, &lenient, &view);
    let plan = policy.plan(&view);
    assert_eq!(plan.actions, []);
    let why = policy.explain_pending(&view).remove(0).why;
    assert!(why.contains("waits for a GPU of its own, expected in 50 s"), "{why}");
    // The other job goes on, against expectation: the wait may cost as much as sharing would have cost.
    let mut plan = plan;
    while plan.actions.is_empty() {
        view.now = plan.wake.unwrap();
        plan = policy.plan(&view);
    }
    let waited = view.now.since(NOW);
    assert!(waited > Span::from_secs(600) && waited < Span::from_secs(2_400), "{waited}");
    assert_eq!(placed_on(&view, &plan), [(1, 0, 0)]);
}

#[test]
fn no_job_waits_for_a_gpu_that_others_will_take() {
    let lenient = InterferenceContext { max_slowdown: Some(Slowdown(2_500)), ..known() };
    let mut view = neighbors(&[&[("heavy", 4_000)], &[("heavy", 50)]]);
    view.nodes[0].devices[1].sharing.ranks_free = Some(0);
    let jobs = (1..=2).map(|number| {
        let mut job = training(number, "heavy", 1_000);
        (job.submitted_at, job.eligible_at) = (view.now, view.now);
        job
    });
    let view = with(view.clone(), jobs.collect());
    assert_eq!(placed(&lenient, &view), [(2, 0, 0)]);
}

#[test]
fn while_jobs_wait_for_whole_gpus_idle_ones_have_a_cost() {
    let mut waiting = view(vec![node(1, &[1_000; 2])], vec![job(2, gpus(2))]);
    runs(&mut waiting, training(100, "light", 1_000), 0, 0, 1_000);
    let view = with(waiting, vec![training(1, "light", 100)]);
    assert_eq!(placed(&known(), &view), [(1, 0, 0)]);
    let mut spreading = policy("hybrid:idle-price=0,queue-weight=0,preempt=off", &known(), &view);
    assert_eq!(placed_on(&view, &spreading.plan(&view)), [(1, 0, 1)]);
}

#[test]
fn an_idle_gpu_is_taken_from_the_node_with_the_fewest_idle_ones() {
    let mut idle = view(vec![node(1, &[1_000; 3]), node(2, &[1_000; 2])], vec![training(1, "light", 100)]);
    assert_eq!(placed(&known(), &idle), [(1, 1, 0)]);
    idle.nodes[1].devices[0].model = "K80".into();
    idle.nodes[1].devices[1].model = "K80".into();
    idle.nodes[0].devices.iter_mut().for_each(|device| device.model = "H100".into());
    assert_eq!(placed(&known(), &idle), [(1, 0, 0)], "the faster make counts for more");
}

/// The analytic model, and the number of sets that it was asked about.
#[derive(Debug, Default)]
struct Counting(Mutex<usize>);

impl Interference for Counting {
    fn predict(&self, sets: &[ColocationSet]) -> Vec<Vec<ColocationEstimate>> {
        *self.0.lock().unwrap() += sets.len();
        AnalyticInterference::<MaxMinSharing>::default().predict(sets)
    }
}

#[test]
fn what_was_found_out_of_a_job_and_its_neighbors_is_not_asked_again() {
    let counting = Arc::new(Counting::default());
    let context = InterferenceContext { interference: counting.clone(), ..known() };
    let busy: &[(&str, u64)] = &[("heavy", 4_000), ("light", 4_000)];
    let view = with(neighbors(&[busy, busy]), vec![training(1, "heavy", 100), training(2, "middling", 100)]);
    let mut policy = policy("hybrid:preempt=off", &context, &view);
    assert_eq!(policy.plan(&view).actions, []);
    let asked = *counting.0.lock().unwrap();
    assert!(asked > 0);
    for _ in 0..3 {
        assert_eq!(policy.plan(&view).actions, []);
    }
    assert_eq!(*counting.0.lock().unwrap(), asked);
}

#[test]
fn devices_of_two_nodes_may_have_one_id() {
    let mut nodes = view(vec![node(1, &[1_000]), node(2, &[1_000])], vec![]);
    nodes.now = NOW;
    runs(&mut nodes, training(100, "middling", 4_000), 0, 0, 4_000);
    runs(&mut nodes, training(200, "light", 4_000), 1, 0, 4_000);
    assert_eq!(nodes.nodes[0].devices[0].id, nodes.nodes[1].devices[0].id);
    let view = with(nodes, vec![training(1, "middling", 100)]);
    assert_eq!(placed(&known(), &view), [(1, 1, 0)]);
}

/// A policy that has seen residents come and go decides as one that sees them for the first time.
#[test]
fn what_is_remembered_of_a_device_lasts_until_its_residents_change() {
    let first = with(neighbors(&[&[("heavy", 4_000)], &[("light", 4_000)]]), vec![]);
    let newcomer = training(1, "middling", 1_000);
    let mut old = policy("hybrid:preempt=off,later=1000", &known(), &first);
    assert_eq!(old.dry_run(&first, &newcomer).unwrap().placement.parts[0].devices[0].0.as_ref(), "gpu-1");
    for devices in [
        [&[("light", 4_000)][..], &[("heavy", 4_000)]],
        [&[("light", 40)], &[("light", 4_000)]],
        [&[("light", 4_000), ("light", 400)], &[("light", 400)]],
        [&[("heavy", 4_000)], &[("heavy", 4_000)]],
    ] {
        let next = neighbors(&devices);
        let gone = first.running.keys().chain(next.running.keys()).copied().map(ViewChange::Gone);
        let changes: Vec<ViewChange> = gone.chain(next.as_changes()).collect();
        old.learn(&next, &changes);
        let mut new = policy("hybrid:preempt=off,later=1000", &known(), &next);
        let [old, new] = [&mut old, &mut new].map(|policy| policy.dry_run(&next, &newcomer));
        assert_eq!(old.map(|it| it.placement), new.map(|it| it.placement), "{devices:?}");
    }
}

/// What was measured of pairs: every job beside a heavy one has this slowdown.
#[derive(Debug)]
struct Measured(f64);

impl Interference for Measured {
    fn predict(&self, sets: &[ColocationSet]) -> Vec<Vec<ColocationEstimate>> {
        let slowdown = |set: &ColocationSet| match set.members.iter().any(|it| it.model == "heavy") {
            true => self.0,
            false => 1.0,
        };
        let of_set = |set: &ColocationSet| {
            let estimate_of = |member| match set.members.len() {
                1 => ColocationEstimate::alone(member),
                _ => ColocationEstimate {
                    measured: true,
                    ..ColocationEstimate::slowed(member, slowdown(set), 0.01)
                },
            };
            set.members.iter().map(estimate_of).collect()
        };
        sets.iter().map(of_set).collect()
    }
}

fn measured(slowdown: f64) -> InterferenceContext {
    InterferenceContext { interference: Arc::new(Measured(slowdown)), ..known() }
}

/// A light job for an hour, and a heavy one that joined it when so many seconds of it were left.
fn joined(left: u64) -> View {
    let mut view = neighbors(&[&[("light", left)]]);
    view.now = Time::EPOCH + Span::from_secs(10_000);
    let mut late = training(200, "heavy", left);
    late.submitted_at = view.now;
    runs(&mut view, late, 0, 0, left);
    for job in view.running.values_mut() {
        job.ends_at = Some(view.now + Span::from_secs(left));
    }
    view
}

fn stopped(plan: &Plan) -> Vec<(u64, &str)> {
    plan.actions
        .iter()
        .filter_map(|action| match action {
            Action::Preempt { job, why } => Some((job.number, why.as_str())),
            Action::Reclaim { .. }
            | Action::StopIdle { .. }
            | Action::Place { .. }
            | Action::Allot { .. } => None,
        })
        .collect()
}

fn later(view: &mut View, secs: u64) {
    view.now += Span::from_secs(secs);
}

#[test]
fn the_job_that_started_last_is_stopped_when_the_measured_slowdown_is_too_large() {
    let mut view = joined(4_000);
    let mut policy = policy("hybrid", &measured(1.8), &view);
    let plan = policy.plan(&view);
    assert_eq!(stopped(&plan), [], "measurements of a start tell little");
    view.now = plan.wake.unwrap();
    assert_eq!(view.now, Time::EPOCH + Span::from_secs(10_060));
    let separated = policy.plan(&view);
    assert_eq!(
        stopped(&separated),
        [(
            200,
            "job 200 has a measured slowdown of 1.8 beside job 100 on gpu-0, and 1.3 is allowed. It started \
             last, so it is queued again"
        )]
    );
    assert_eq!(stopped(&policy.plan(&view)), [], "it was told to stop");
}

#[test]
fn no_job_is_stopped_for_a_prediction_or_within_the_tolerance_or_without_the_watchdog() {
    let mut view = joined(4_000);
    later(&mut view, 600);
    for (text, context) in [
        ("hybrid", doubting(0.0, 1.0)),
        ("hybrid", measured(1.36)),
        ("hybrid:watchdog=off", measured(1.8)),
        ("hybrid:sharing=off", measured(1.8)),
    ] {
        assert_eq!(stopped(&policy(text, &context, &view).plan(&view)), [], "{text}");
    }
    assert_eq!(stopped(&policy("hybrid", &measured(1.37), &view).plan(&view)).len(), 1);
}

#[test]
fn a_job_that_would_lose_more_than_all_would_gain_stays() {
    let mut view = joined(4_000);
    later(&mut view, 3_500);
    assert_eq!(stopped(&policy("hybrid", &measured(1.8), &view).plan(&view)), []);
}

#[test]
fn new_knowledge_makes_the_guard_check_all_jobs_again() {
    let mut view = joined(4_000);
    let mut policy = policy("hybrid", &doubting(0.0, 1.0), &view);
    later(&mut view, 100);
    assert_eq!(stopped(&policy.plan(&view)), []);
    policy.set_interference(&measured(1.8));
    assert_eq!(stopped(&policy.plan(&view)).len(), 1);
}

#[test]
fn separated_jobs_are_not_put_together_again() {
    let mut view = joined(4_000);
    later(&mut view, 100);
    let context = measured(1.8);
    let mut policy = policy("hybrid", &context, &view);
    assert_eq!(stopped(&policy.plan(&view)).len(), 1);
    let gone = view.running[&JobId::new(200)].clone();
    let back = PendingJob {
        id: gone.id,
        priority: gone.priority,
        submitted_at: gone.submitted_at,
        eligible_at: view.now,
        demand: gone.demand,
        attained: gone.attained,
        traits: gone.traits.clone(),
    };
    let mut alone = joined(4_000).nodes[0].clone();
    alone.devices[0].jobs.retain(|job| *job != gone.id);
    alone.devices[0].free.0 += 200;
    let changes = [ViewChange::Pending(back), ViewChange::Node(alone)];
    view.apply(&changes);
    policy.learn(&view, &changes);
    assert_eq!(policy.plan(&view).actions, []);
}

#[test]
fn whole_devices_follow_the_mapper() {
    let nodes = vec![node(1, &[1_000; 4]), node(2, &[1_000; 2])];
    let mut pair = job(1, gpus(2));
    Arc::make_mut(&mut pair.traits).launch = LaunchMode::PerGpu;
    assert_eq!(pair.demand.gpus, GpuRequest::Whole(2));
    assert_eq!(placed(&known(), &view(nodes, vec![pair])), [(1, 1, 0)]);
}

#[test]
fn no_job_is_done_later_than_without_sharing_by_more_than_the_tolerance() {
    // The resident has run alone, so any neighbor makes it later.
    let view = with(neighbors(&[&[("heavy", 4_000)]]), vec![training(1, "middling", 100)]);
    let mut generous = policy("hybrid:preempt=off,later=1000", &unlimited(), &view);
    assert_eq!(placed_on(&view, &generous.plan(&view)), [(1, 0, 0)]);
    let mut strict = policy("hybrid:preempt=off,later=0", &unlimited(), &view);
    assert_eq!(strict.plan(&view).actions, []);
    let why = strict.explain_pending(&view).remove(0).why;
    assert!(why.contains("later than if no jobs shared GPUs"), "{why}");
}

#[test]
fn jobs_that_accept_a_slowdown_share_while_others_wait() {
    let mut view = neighbors(&[&[]]);
    runs(&mut view, bounded(training(100, "heavy", 50_000), 3.0), 0, 0, 50_000);
    let strict = bounded(training(1, "heavy", 100), 1.9);
    let tolerant = bounded(training(2, "heavy", 100), 3.0);
    let view = with(view, vec![strict, tolerant]);
    let mut policy = policy("hybrid:preempt=off", &known(), &view);
    assert_eq!(placed_on(&view, &policy.plan(&view)), [(2, 0, 0)], "{:?}", policy.explain_pending(&view));
}
