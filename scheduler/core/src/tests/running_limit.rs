//! The limit on the jobs that one user runs at once.

use cohabit_policy::{Action, PastRuns, Plan};
use cohabit_types::{
    DeviceId, JobChange, JobEventKind, JobId, JobSpec, JobState, Outcome, Placement, Principal,
    RankPlacement, ReasonCode, Reply, Report, Request, Role, Share, Span, Submit, Time,
};

use super::kit::*;
use crate::{Config, Event, Head};

/// A head with one node, on which each user may run this many jobs.
fn limited(devices: u32, limit: u64) -> TestHead {
    let mut test = TestHead::new();
    set_limit(&mut test, Some(limit));
    test.join(1, devices);
    test.effects();
    test
}

fn set_limit(test: &mut TestHead, max_running_jobs: Option<u64>) {
    test.event(Event::HeadStarted(Config { max_running_jobs, ..Config::default() }));
}

fn submit_as(test: &mut TestHead, by: Principal, spec: JobSpec) -> JobId {
    let submit = Submit { spec, idempotency_key: None, estimate: None };
    let Reply::Accepted { job, .. } = test.request(by, Request::Submit(Box::new(submit))) else {
        panic!("accepted")
    };
    job
}

fn bob() -> Principal {
    Principal::new("bob", Role::User)
}

fn states(test: &TestHead, jobs: &[JobId]) -> Vec<JobState> {
    jobs.iter().map(|job| test.state(*job)).collect()
}

#[test]
fn a_user_runs_no_more_jobs_than_allowed_and_the_others_follow_in_their_order() {
    let mut test = limited(8, 2);
    let jobs = [(); 4].map(|()| test.submit(gpus(1)));
    let (running, pending) = (JobState::Running, JobState::Pending);
    assert_eq!(states(&test, &jobs), [running, running, pending, pending]);
    let record = test.record(jobs[2]);
    assert_eq!(record.reason_code, ReasonCode::WaitingForUserLimit);
    assert_eq!(record.reason, "its user runs 2 jobs, as many as max-running-jobs allows");
    assert!(test.forecasts.cover(&test.head), "of jobs beyond the limit there is nothing to tell");
    test.change(JobChange::Cancel, jobs[0]);
    assert_eq!(states(&test, &jobs), [JobState::Completing, running, pending, pending], "it still counts");
    test.ended(rank(1, 1), Outcome::Exited(1), None);
    assert_eq!(states(&test, &jobs), [JobState::Cancelled, running, running, pending]);
    let urgent = submit_as(&mut test, ada(), JobSpec { priority: 1, ..gpus(1) });
    test.ended(rank(2, 1), Outcome::Exited(0), None);
    assert_eq!(states(&test, &[jobs[3], urgent]), [pending, running], "by priority first");
}

#[test]
fn jobs_beyond_the_limit_hold_no_turn_in_the_queue() {
    let mut test = limited(4, 1);
    let first = test.submit(gpus(1));
    let waiting = test.submit(gpus(4));
    let other = submit_as(&mut test, bob(), gpus(1));
    assert_eq!(
        states(&test, &[first, waiting, other]),
        [JobState::Running, JobState::Pending, JobState::Running]
    );
    assert!(test.head.view(test.now).pending.is_empty());
}

#[test]
fn jobs_of_admins_are_not_limited_and_do_not_count() {
    let mut test = limited(4, 1);
    let ada_as_admin = || Principal::new("ada", Role::Admin);
    let jobs = [ada_as_admin(), ada_as_admin(), ada(), ada()].map(|by| submit_as(&mut test, by, gpus(1)));
    let (running, pending) = (JobState::Running, JobState::Pending);
    assert_eq!(states(&test, &jobs), [running, running, running, pending]);
}

#[test]
fn members_of_arrays_count_one_by_one_and_those_beyond_their_own_limit_take_no_place() {
    let mut test = limited(8, 3);
    let members = test.submit(array(0, 3, Some(1)));
    let plain = [(); 3].map(|()| test.submit(gpus(1)));
    let member = |index| JobId::member(members.number, index);
    let (running, pending) = (JobState::Running, JobState::Pending);
    assert_eq!(states(&test, &plain), [running, running, pending]);
    assert_eq!(states(&test, &[member(0), member(1)]), [running, pending]);
    let code = |test: &TestHead, job| test.record(job).reason_code;
    assert_eq!(code(&test, member(1)), ReasonCode::WaitingForArrayLimit);
    assert_eq!(code(&test, plain[2]), ReasonCode::WaitingForUserLimit);
    test.ended(member(0).attempt(1).rank(0), Outcome::Exited(0), None);
    assert_eq!(states(&test, &[member(1), plain[2]]), [running, pending], "it comes first in the queue");
    let unlimited = submit_as(&mut test, bob(), array(0, 9, None));
    let placed = test.head.submissions[&unlimited.number].placed();
    assert_eq!(placed, 3);
}

#[test]
fn a_job_that_gets_no_place_gives_way_when_it_is_held() {
    let mut test = limited(2, 1);
    submit_as(&mut test, bob(), gpus(1));
    let (large, small) = (test.submit(gpus(2)), test.submit(gpus(1)));
    assert_eq!(test.record(large).reason_code, ReasonCode::WaitingForDevices);
    assert_eq!(
        test.record(small).reason,
        "its user runs 0 jobs, and those of its user ahead of it reach max-running-jobs (1)"
    );
    let submit = Submit { spec: gpus(1), idempotency_key: None, estimate: None };
    let reason = |by: Principal| {
        let job = test.head.prepare_dry_run(test.now, &by, submit.clone()).unwrap();
        test.head.finish_dry_run(&job, &unlikely(), &PastRuns::default()).reason
    };
    assert!(reason(ada()).contains("ahead of it reach max-running-jobs (1)"), "{}", reason(ada()));
    assert!(reason(bob()).contains("runs 1 job, as many as"), "{}", reason(bob()));
    assert!(!reason(root()).contains("max-running-jobs"), "{}", reason(root()));
    test.change(JobChange::Hold, large);
    assert_eq!(test.state(small), JobState::Running);
}

/// A policy that finds no place.
fn unlikely() -> cohabit_policy::DryRunResult {
    cohabit_policy::DryRunResult {
        place: Err(cohabit_policy::Shortage::Nodes),
        current: Vec::new(),
        with_job: Vec::new(),
        queue: cohabit_policy::QueueForecast::default(),
    }
}

#[test]
fn a_limit_that_a_restart_lowers_stops_nothing_and_holds_back_what_waits() {
    let mut test = limited(8, 3);
    let jobs = [(); 4].map(|()| test.submit(gpus(1)));
    test.now += Span::from_secs(1);
    set_limit(&mut test, Some(1));
    test.rejoin(1, 2, jobs[..3].iter().map(|job| running(&test, *job)).collect());
    assert_eq!(states(&test, &jobs[..3]), [JobState::Running; 3]);
    assert_eq!(test.record(jobs[3]).reason, "its user runs 3 jobs, more than max-running-jobs allows (1)");
    for ended in &jobs[..2] {
        test.ended_on(key(1, 2), ended.attempt(1).rank(0), Outcome::Exited(0), None);
        assert_eq!(test.state(jobs[3]), JobState::Pending);
    }
    test.ended_on(key(1, 2), jobs[2].attempt(1).rank(0), Outcome::Exited(0), None);
    assert_eq!(test.state(jobs[3]), JobState::Running);
}

fn running(test: &TestHead, job: JobId) -> cohabit_types::HeldRank {
    let phase = cohabit_types::HeldRankPhase::Running(test.now);
    cohabit_types::HeldRank { rank: job.attempt(1).rank(0), phase }
}

#[test]
fn a_plan_that_starts_more_than_allowed_is_cut() {
    let mut test = limited(2, 1);
    let submit = |test: &mut TestHead| {
        let submit = Submit { spec: gpus(1), idempotency_key: None, estimate: None };
        let request = Request::Submit(Box::new(submit));
        test.event(Event::Client(cohabit_types::ClientRequestId(1), ada(), request));
    };
    submit(&mut test);
    submit(&mut test);
    let place = |number: u64, device: &str| {
        let devices = vec![DeviceId(device.into())];
        let share = Share::WHOLE;
        let part = RankPlacement { node: node(1), devices, share, ranks: vec![], host: None };
        let placement = Placement { parts: vec![part] };
        Action::Place {
            job: JobId::new(number),
            placement,
            runtime: None,
            slowdown: None,
            why: String::new(),
        }
    };
    let actions = vec![place(1, "gpu-0"), place(2, "gpu-1")];
    let request = test.head.open_plan_request.unwrap();
    test.event(Event::Planned(request, Plan { actions, ..Plan::default() }));
    assert_eq!(states(&test, &[job(1), job(2)]), [JobState::Running, JobState::Pending]);
    let dropped = JobEventKind::PlanDropped("its user runs 1 job, and max-running-jobs allows 1".into());
    assert!(test.head.job_history(job(2)).iter().any(|event| event.kind == dropped));
}

#[test]
fn a_limited_head_is_the_same_after_a_replay_and_from_its_parts() {
    let mut test = limited(4, 2);
    let jobs = [(); 3].map(|()| test.submit(gpus(1)));
    submit_as(&mut test, bob(), array(0, 5, Some(4)));
    test.ended(jobs[0].attempt(1).rank(0), Outcome::Exited(0), None);
    let mut replayed = Head::new();
    for (at, event) in &test.events {
        replayed.handle(*at, event.clone(), &mut Vec::new());
    }
    assert_eq!(replayed, test.head);
    let (rest, parts) = test.head.split_for_snapshot(2);
    let restored = Head::from_snapshot(rest, parts.collect()).unwrap();
    restored.check().unwrap();
    assert_eq!(restored.view(test.now), test.head.view(test.now));
}

/// A policy that was slow for so long that the job which took the turn of another ran, ended and left memory
/// since it last looked. The other one never got its turn back.
#[test]
fn the_turn_comes_back_from_a_job_that_has_left_memory_unseen() {
    let mut test = limited(1, 1);
    let others = submit_as(&mut test, bob(), gpus(1));
    let (low, high) = (test.submit(gpus(1)), submit_as(&mut test, ada(), JobSpec { priority: 1, ..gpus(1) }));
    let end = |rank| {
        let (outcome, at) = (Outcome::Exited(0), Time::from_micros(2_000_000));
        Event::Report(
            key(1, 1),
            Report::Ended { rank, outcome, stopped: None, progress: None, at, usage: Vec::new() },
        )
    };
    test.event(end(rank(others.number, 1)));
    let part = RankPlacement {
        node: node(1),
        devices: vec![DeviceId("gpu-0".into())],
        share: Share::WHOLE,
        ranks: vec![],
        host: None,
    };
    let placement = Placement { parts: vec![part] };
    let place = Action::Place { job: high, placement, runtime: None, slowdown: None, why: "its turn".into() };
    let request = test.head.open_plan_request.expect("a job ended");
    test.event(Event::Planned(request, Plan { actions: vec![place], wake: None }));
    test.event(end(rank(high.number, 1)));
    test.now += Span::from_secs(2 * 3_600);
    test.event(Event::Alarm);
    assert!(!test.head.jobs.contains_key(&high), "it is in the archive");
    test.planned();
    assert_eq!(test.state(low), JobState::Running);
}
