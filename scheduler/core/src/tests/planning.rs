//! Plans are proposals: what does not fit the present state is dropped.

use cohabit_policy::{Action, Plan};
use cohabit_types::{
    Inventory, JobEventKind, JobId, JobSpec, JobState, Outcome, Placement, PlanRequestId, RankPlacement,
    ReasonCode, Report, Share, Signal, Span, StopReason,
};

use super::kit::*;
use crate::{Effect, Event};

fn on(device: &str, share: Share) -> Placement {
    let devices = vec![cohabit_types::DeviceId(device.into())];
    Placement { parts: vec![RankPlacement { node: node(1), devices, share, ranks: vec![], host: None }] }
}

fn place(job: JobId, placement: Placement) -> Action {
    Action::Place { job, placement, runtime: None, slowdown: None, why: String::new() }
}

/// Submits these jobs without a plan; answers with the request that is open then.
pub(super) fn unplanned(test: &mut TestHead, specs: Vec<JobSpec>) -> PlanRequestId {
    for spec in specs {
        let submit = cohabit_types::Submit { spec, idempotency_key: None, estimate: None };
        let request = cohabit_types::Request::Submit(Box::new(submit));
        test.event(Event::Client(cohabit_types::ClientRequestId(1), ada(), request));
    }
    test.head.open_plan_request.expect("a new job is a question to the policy")
}

pub(super) fn answer(test: &mut TestHead, ticket: PlanRequestId, actions: Vec<Action>) {
    test.event(Event::Planned(ticket, Plan { actions, ..Plan::default() }));
}

fn was_dropped(test: &TestHead, job: JobId) -> bool {
    test.head.job_history(job).iter().any(|it| matches!(it.kind, JobEventKind::PlanDropped(_)))
}

/// Jobs that demand nothing still take files, processes and memory of the worker.
#[test]
fn a_node_runs_no_more_jobs_than_its_worker_allows() {
    let mut test = TestHead::new();
    test.event(Event::Joined(key(1, 1), Inventory { max_jobs: Some(2), ..inventory(1, 1, vec![]) }));
    test.planned();
    let jobs = [(); 4].map(|()| test.submit(gpus(0)));
    let running = |test: &TestHead| jobs.map(|job| test.state(job) == JobState::Running);
    assert_eq!(running(&test), [true, true, false, false]);
    let record = test.record(jobs[2]);
    assert_eq!(record.reason_code, ReasonCode::WaitingForHost);
    assert!(record.reason.contains("already runs 2, its limit"), "{}", record.reason);
    test.ended(rank(1, 1), Outcome::Exited(0), None);
    assert_eq!(running(&test), [false, true, true, false]);
}

#[test]
fn a_device_is_not_placed_twice() {
    let mut test = TestHead::with_devices(1);
    let ticket = unplanned(&mut test, vec![gpus(1), part(600), part(600)]);
    let whole = || on("gpu-0", Share::WHOLE);
    answer(&mut test, ticket, vec![place(job(1), whole()), place(job(2), on("gpu-0", Share(600)))]);
    assert_eq!((test.state(job(1)), test.state(job(2))), (JobState::Running, JobState::Pending));
    assert!(was_dropped(&test, job(2)));
}

#[test]
fn an_invalid_placement_is_dropped() {
    for placement in [
        on("no-such-device", Share::WHOLE),
        on("gpu-0", Share(500)),
        Placement { parts: vec![] },
        Placement { parts: [on("gpu-0", Share::WHOLE).parts, on("gpu-1", Share::WHOLE).parts].concat() },
    ] {
        let mut test = TestHead::with_devices(2);
        let ticket = unplanned(&mut test, vec![gpus(1)]);
        answer(&mut test, ticket, vec![place(job(1), placement)]);
        assert_eq!(test.state(job(1)), JobState::Pending);
        assert!(was_dropped(&test, job(1)));
    }
}

#[test]
fn an_array_never_exceeds_its_limit_with_any_plan() {
    let mut test = TestHead::with_devices(2);
    let ticket = unplanned(&mut test, vec![array(0, 1, Some(1))]);
    let members = [JobId::member(1, 0), JobId::member(1, 1)];
    let actions =
        vec![place(members[0], on("gpu-0", Share::WHOLE)), place(members[1], on("gpu-1", Share::WHOLE))];
    answer(&mut test, ticket, actions);
    assert_eq!(members.map(|it| test.state(it)), [JobState::Running, JobState::Pending]);
    assert!(was_dropped(&test, members[1]));
}

#[test]
fn a_preempted_job_is_stopped_and_queued_again() {
    let mut test = TestHead::with_devices(1);
    let id = test.submit(gpus(1));
    let ticket = unplanned(&mut test, vec![gpus(1)]);
    answer(&mut test, ticket, vec![Action::Preempt { job: id, why: "a test".into() }]);
    assert_eq!(test.state(id), JobState::Completing);
    test.ended(rank(1, 1), Outcome::Signalled(Signal::TERM), Some(StopReason::Preempted));
    assert_eq!(test.record(id).attempt, 2, "first come, first served");
}

#[test]
fn a_reclaimed_job_waits_again_uses_no_retry_and_is_left_alone_after_three_times() {
    let mut test = TestHead::with_devices(1);
    let id = test.submit(JobSpec { preemptible: true, ..gpus(1) });
    for attempt in 1..=3 {
        let ticket = unplanned(&mut test, vec![gpus(1)]);
        answer(&mut test, ticket, vec![Action::Reclaim { job: id, why: "a test".into() }]);
        assert_eq!(test.state(id), JobState::Completing);
        test.ended(rank(1, attempt), Outcome::Signalled(Signal::TERM), Some(StopReason::Reclaimed));
        assert_eq!(test.record(id).attempt, attempt + 1, "first come, first served");
    }
    let running = &test.head.view(test.now).running[&id];
    assert_eq!(running.reclaimable_from, test.now + Span::from_secs(86_400));
    assert_eq!(test.record(id).attempts[0].stopped, Some(StopReason::Reclaimed));
}

/// The request for a plan that this event causes.
fn asks(test: &mut TestHead, after: Span, event: Event) -> Option<PlanRequestId> {
    test.now += after;
    let mut effects = Vec::new();
    test.head.handle(test.now, event, &mut effects);
    effects.iter().find_map(|effect| if let Effect::Plan(ticket) = effect { Some(*ticket) } else { None })
}

fn woken_after_a_minute(test: &TestHead, ticket: PlanRequestId) -> Event {
    Event::Planned(ticket, Plan { wake: Some(test.now + MINUTE), ..Plan::default() })
}

const MINUTE: Span = Span::from_secs(60);

#[test]
fn an_interference_aware_policy_is_asked_about_colocated_jobs_although_none_waits() {
    let mut test = TestHead::with_devices(1);
    test.submit(part(500));
    assert_eq!(
        asks(&mut test, Span::ZERO, Event::InterferenceUpdated),
        None,
        "who is alone cannot be separated"
    );
    test.submit(part(500));
    let first = asks(&mut test, Span::ZERO, Event::InterferenceUpdated).expect("it is asked");
    assert_eq!(
        asks(&mut test, Span::ZERO, Event::InterferenceUpdated),
        None,
        "one question is open at a time"
    );
    let plan = woken_after_a_minute(&test, first);
    let second =
        asks(&mut test, Span::ZERO, plan).expect("what it learned meanwhile is a question of its own");
    let plan = woken_after_a_minute(&test, second);
    assert_eq!(asks(&mut test, Span::ZERO, plan), None);
    assert!(asks(&mut test, MINUTE, Event::Alarm).is_some(), "it wanted to be woken");
}

#[test]
fn a_policy_without_interference_model_is_not_asked_about_running_jobs() {
    let mut test = TestHead::with_devices(1);
    let ticket = unplanned(&mut test, vec![part(500), part(500)]);
    let actions = [job(1), job(2)].map(|id| place(id, on("gpu-0", Share(500))));
    let plan = Plan { actions: actions.into(), wake: Some(test.now + MINUTE) };
    let ticket =
        asks(&mut test, Span::ZERO, Event::Planned(ticket, plan)).expect("a second job came meanwhile");
    assert!(test.head.has_colocated_jobs());
    let plan = woken_after_a_minute(&test, ticket);
    assert_eq!(asks(&mut test, Span::ZERO, plan), None);
    assert_eq!(asks(&mut test, MINUTE, Event::Alarm), None);
}

#[test]
fn a_preempted_member_does_not_hide_others_of_its_array() {
    let mut test = TestHead::with_devices(1);
    test.submit(array(0, 9, None));
    let ticket = unplanned(&mut test, vec![gpus(1)]);
    let [first, second] = [JobId::member(1, 0), JobId::member(1, 1)];
    answer(&mut test, ticket, vec![Action::Preempt { job: first, why: "a test".into() }]);
    let (rank, at) = (first.attempt(1).rank(0), test.now);
    let (outcome, stopped) = (Outcome::Signalled(Signal::TERM), Some(StopReason::Preempted));
    test.event(Event::Report(
        key(1, 1),
        Report::Ended { rank, outcome, stopped, progress: None, at, usage: Vec::new() },
    ));
    let shown: Vec<JobId> = test.head.view(test.now).pending.into_keys().collect();
    assert_eq!(shown, [first, second, job(2)], "one device starts one member at once");
}

#[test]
fn ranks_have_the_numbers_that_the_plan_gave_them() {
    let mut test = TestHead::new();
    test.join(1, 1);
    test.join(2, 1);
    let mut spec = JobSpec { launch: cohabit_types::LaunchMode::PerGpu, ..gpus(2) };
    spec.demand.spread = cohabit_types::Spread::Free;
    let ticket = unplanned(&mut test, vec![spec]);
    let part = |number: u64, rank: u32| RankPlacement {
        node: node(number),
        devices: vec![cohabit_types::DeviceId("gpu-0".into())],
        share: Share::WHOLE,
        ranks: vec![rank],
        host: None,
    };
    answer(&mut test, ticket, vec![place(job(1), Placement { parts: vec![part(1, 1), part(2, 0)] })]);
    let attempt = job(1).attempt(1);
    test.ended_on(key(2, 1), attempt.rank(0), Outcome::Exited(0), None);
    assert_eq!(test.state(job(1)), JobState::Running);
    test.ended_on(key(1, 1), attempt.rank(1), Outcome::Exited(0), None);
    assert_eq!(test.state(job(1)), JobState::Completed);
}
