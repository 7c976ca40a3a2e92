//! Applications: root jobs and their children.

use cohabit_types::{
    ApplicationRecord, ApplicationWork, AttemptId, Bytes, ChangeResult, CodeSnapshot, ContentHash, Demand,
    Entrypoint, GpuRequest, JobChange, JobId, JobSpec, JobState, Order, Outcome, Principal, ReasonCode,
    Refusal, RefusalCode, Reply, Request, Role, RunnerCount, RunnerRole, RunnerWork, Share, Signal, Span,
    StopReason, Submit,
};

use super::kit::{TestHead, ada, command, job, key, rank};
use crate::{Config, Event};

fn program(number: u8) -> CodeSnapshot {
    CodeSnapshot {
        manifest: ContentHash([number; 32]),
        folder: "/target".into(),
        files: 1,
        bytes: Bytes(1 << 20),
    }
}

pub(super) fn application(name: &str, max_gpus: Option<u32>) -> JobSpec {
    let work = ApplicationWork { program: "search".into(), arguments: vec![], max_gpus };
    JobSpec {
        name: name.into(),
        entrypoint: Entrypoint::Application(work),
        demand: Demand { gpus: GpuRequest::Whole(0), ..Demand::default() },
        code: Some(program(1)),
        ..JobSpec::command(vec![], "/home/ada".into())
    }
}

/// A child with this part of a GPU, in thousandths.
pub(super) fn runner(application: AttemptId, thousandths: u32) -> JobSpec {
    let (program_name, role) = ("search".into(), RunnerRole::Actor);
    let work =
        RunnerWork { application, program: program_name, role, arguments: vec![], node: None, ranks: 1 };
    let gpus = match thousandths {
        whole if whole % 1_000 == 0 => GpuRequest::Whole(whole / 1_000),
        part => GpuRequest::Part(Share(part)),
    };
    let gpu_memory = Some(Bytes(1 << 30)).filter(|_| thousandths > 0);
    JobSpec {
        name: "trial".into(),
        entrypoint: Entrypoint::Runner(work),
        demand: Demand { gpus, gpu_memory, ..Demand::default() },
        code: Some(program(1)),
        ..JobSpec::command(vec![], "/home/ada".into())
    }
}

/// A head with two nodes of two GPUs, and an application of Ada that runs on the first as job 1.
pub(super) fn running(max_gpus: Option<u32>) -> TestHead {
    running_on(2, max_gpus)
}

/// The same with so many nodes.
fn running_on(nodes: u64, max_gpus: Option<u32>) -> TestHead {
    let mut test = TestHead::with_devices(2);
    (2..=nodes).for_each(|node| test.join(node, 2));
    test.submit(application("search", max_gpus));
    test.started(rank(1, 1));
    test.effects();
    test
}

pub(super) fn root() -> AttemptId {
    job(1).attempt(1)
}

pub(super) fn refusal(reply: Reply) -> Refusal {
    match reply {
        Reply::Refused(refusal) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

fn stops(test: &mut TestHead) -> Vec<(JobId, StopReason)> {
    let stop = |order| match order {
        Order::Stop { attempt, why } => Some((attempt.job, why)),
        _ => None,
    };
    test.orders().into_iter().filter_map(|(_, order)| stop(order)).collect()
}

#[test]
fn the_end_of_the_roots_attempt_ends_its_children() {
    let mut test = running_on(1, None);
    let placed = test.submit(runner(root(), 1_000));
    let waiting = test.submit(runner(root(), 2_000));
    test.effects();
    test.ended(rank(1, 1), Outcome::Exited(1), None);
    assert_eq!(test.state(job(1)), JobState::Failed);
    assert_eq!(test.state(waiting), JobState::Cancelled);
    let record = test.record(waiting);
    assert_eq!(record.reason_code, ReasonCode::ApplicationEnded);
    assert_eq!(record.reason, "its application ended before it ran");
    assert_eq!(stops(&mut test), [(placed, StopReason::ApplicationEnded)]);
    let ended = Some(StopReason::ApplicationEnded);
    test.ended(rank(2, 1), Outcome::Signalled(Signal::TERM), ended);
    let record = test.record(placed);
    assert_eq!((record.state, record.reason_code), (JobState::Cancelled, ReasonCode::ApplicationEnded));
    assert!(record.reason.starts_with("its application ended after"), "{}", record.reason);
}

/// Its reason names the application; that of one which a user has cancelled does not.
#[test]
fn an_application_withdraws_what_it_does_not_need() {
    let mut test = running_on(1, None);
    let placed = test.submit(runner(root(), 1_000));
    let waiting = test.submit(runner(root(), 2_000));
    let cancelled = test.submit(runner(root(), 2_000));
    test.effects();
    assert_eq!(test.change(JobChange::Withdraw, waiting), ChangeResult::Done);
    assert_eq!(test.change(JobChange::Withdraw, waiting), ChangeResult::Already);
    let record = test.record(waiting);
    assert_eq!((record.state, record.reason_code), (JobState::Cancelled, ReasonCode::CancelledByUser));
    let ended =
        |when: &str| format!("application 'search' (job 1) ended it {when}: it was not needed any more");
    assert_eq!(record.reason, ended("before it ran"));
    test.change(JobChange::Cancel, cancelled);
    assert_eq!(test.record(cancelled).reason, "it was cancelled before it ran");

    assert_eq!(test.change(JobChange::Withdraw, placed), ChangeResult::Done);
    assert_eq!(stops(&mut test), [(placed, StopReason::Cancelled)]);
    let reason = test.record(placed).reason;
    assert!(reason.ends_with("because application 'search' (job 1) does not need it any more"), "{reason}");
    test.now += Span::from_secs(12);
    test.ended(rank(2, 1), Outcome::Signalled(Signal::TERM), Some(StopReason::Cancelled));
    assert_eq!(test.record(placed).reason, ended("after 12 s"));
    let ChangeResult::Refused(refusal) = test.change(JobChange::Withdraw, job(1)) else { panic!("a root") };
    assert_eq!(refusal.message, "job 1 is no part of an application: cancel it");
}

/// A requeued child would come back in an application that has ended.
#[test]
fn a_child_that_is_being_requeued_ends_with_its_application() {
    let mut test = running(None);
    let child = test.submit(runner(root(), 1_000));
    assert_eq!(test.change(JobChange::Requeue, child), ChangeResult::Done);
    test.ended(rank(1, 1), Outcome::Exited(0), None);
    test.ended(rank(2, 1), Outcome::Signalled(Signal::TERM), Some(StopReason::Requeued));
    assert_eq!(test.state(child), JobState::Cancelled);
}

#[test]
fn children_of_a_root_that_was_killed_get_no_grace() {
    let mut test = running(None);
    let child = test.submit(runner(root(), 1_000));
    test.change(JobChange::Kill, job(1));
    test.effects();
    test.ended(rank(1, 1), Outcome::Signalled(Signal::KILL), Some(StopReason::Killed));
    assert_eq!(stops(&mut test), [(child, StopReason::Killed)]);
}

#[test]
fn a_root_that_runs_anew_has_no_children_of_before() {
    let mut test = TestHead::with_devices(2);
    let mut spec = application("search", None);
    (spec.retry.limit, spec.retry.backoff) = (1, Span::ZERO);
    test.submit(spec);
    let child = test.submit(runner(root(), 1_000));
    test.effects();
    test.ended(rank(1, 1), Outcome::Signalled(Signal::KILL), None);
    assert_eq!(test.state(job(1)), JobState::Running);
    assert_eq!(stops(&mut test), [(child, StopReason::ApplicationEnded)]);
    let refused = refusal(test.try_submit(runner(root(), 1_000)));
    assert_eq!(refused.code, RefusalCode::WrongState);
    let younger = test.submit(runner(job(1).attempt(2), 1_000));
    assert_eq!(test.state(younger), JobState::Running);
    assert_eq!(test.head.applications("ada")[0].runners, [child, younger]);
}

pub(super) fn main(application: AttemptId) -> JobSpec {
    let mut spec = runner(application, 0);
    if let Entrypoint::Runner(work) = &mut spec.entrypoint {
        work.role = RunnerRole::Main;
    }
    spec
}

#[test]
fn the_mains_of_the_live_attempt_are_named_also_those_that_have_ended() {
    let mut test = TestHead::with_devices(2);
    let mut spec = application("search", None);
    (spec.retry.limit, spec.retry.backoff) = (1, Span::ZERO);
    test.submit(spec);
    let mains = |test: &TestHead| test.head.application(job(1)).map(|it| it.mains);
    assert_eq!(mains(&test), Some(vec![]));
    let (first, actor, second) =
        (test.submit(main(root())), test.submit(runner(root(), 1_000)), test.submit(main(root())));
    assert_eq!(mains(&test), Some(vec![first, second]));
    test.ended(rank(first.number, 1), Outcome::Exited(0), None);
    assert_eq!(mains(&test), Some(vec![first, second]));
    let counts = |test: &TestHead| test.head.application(job(1)).map(|it| it.counts);
    let count = |role, placed, waiting| RunnerCount { role, placed, waiting };
    let both = vec![count(RunnerRole::Main, 1, 0), count(RunnerRole::Actor, 1, 0)];
    assert_eq!(counts(&test), Some(both));
    test.head.check().unwrap();

    test.ended(rank(1, 1), Outcome::Signalled(Signal::KILL), None);
    assert_eq!(test.state(job(1)), JobState::Running);
    assert_eq!(mains(&test), Some(vec![]), "the next attempt has none yet");
    assert_eq!(test.state(actor), JobState::Completing);
    let third = test.submit(main(job(1).attempt(2)));
    assert_eq!(mains(&test), Some(vec![third]));
    test.ended(rank(1, 2), Outcome::Exited(0), None);
    assert_eq!(mains(&test), None, "it has ended");
    test.head.check().unwrap();
}

#[test]
fn a_main_whose_retention_is_over_is_named_no_longer() {
    let mut test = TestHead::with_devices(2);
    let retention = Span::from_secs(1_000);
    test.event(Event::HeadStarted(Config { retention, archive_after: retention, ..Config::default() }));
    test.rejoin(1, 2, vec![]);
    test.submit(application("search", None));
    let main = test.submit(main(root()));
    test.ended_on(key(1, 2), rank(main.number, 1), Outcome::Exited(0), None);
    let mains = |test: &TestHead| test.head.application(job(1)).map(|it| it.mains);
    assert_eq!(mains(&test), Some(vec![main]));
    test.after(retention);
    assert_eq!(mains(&test), Some(vec![]));
    test.head.check().unwrap();
}

#[test]
fn a_live_application_is_described() {
    let mut test = running_on(1, Some(3));
    let before = test.head.application(job(1)).unwrap();
    assert_eq!((before.node.as_deref(), before.max_gpus, before.gpus), (Some("node1"), Some(3), Share(0)));
    assert!(before.started_at.is_some() && before.counts.is_empty());
    test.submit(runner(root(), 500));
    test.submit(runner(root(), 1_000));
    test.submit(runner(root(), 1_000));
    let record = test.head.application(job(1)).unwrap();
    let waiting = RunnerCount { role: RunnerRole::Actor, placed: 2, waiting: 1 };
    assert_eq!((record.gpus, record.counts), (Share(1_500), vec![waiting]));
    assert_eq!(test.head.application(job(2)), None, "it is a child");
    let mut other = application("other", None);
    other.name = "other".into();
    let other = Submit { spec: other, idempotency_key: None, estimate: None };
    test.request(Principal::new("eve", Role::User), Request::Submit(Box::new(other)));
    let names = |all: Vec<ApplicationRecord>| all.into_iter().map(|it| it.name).collect::<Vec<_>>();
    assert_eq!(names(test.head.applications("ada")), ["search"]);
    assert_eq!(names(test.head.all_applications()), ["search", "other"]);
}

#[test]
fn a_child_that_fails_is_retried_in_place() {
    let mut test = running(None);
    let mut spec = runner(root(), 1_000);
    (spec.retry.limit, spec.retry.backoff) = (1, Span::ZERO);
    let child = test.submit(spec);
    test.ended(rank(2, 1), Outcome::Signalled(Signal::KILL), None);
    assert_eq!(test.record(child).attempt, 2);
    assert_eq!(test.record(child).attempts[1].ranks[0].node, "node1");
}

#[test]
fn names_are_unique_among_the_live_applications_of_a_user() {
    let mut test = running(None);
    let refused = refusal(test.try_submit(application("search", None)));
    assert_eq!(refused.code, RefusalCode::WrongState);
    assert!(refused.message.contains("it is job 1") && refused.message.contains("Launch the same program"));
    assert_eq!(test.submit(application("other", None)), job(2));
    let by_bea = Request::Submit(Box::new(Submit {
        spec: application("search", None),
        idempotency_key: None,
        estimate: None,
    }));
    let reply = test.request(Principal::new("bea", Role::User), by_bea);
    assert_eq!(reply, Reply::Accepted { job: job(3), members: 1, notes: vec![] });
    let names =
        |user: &str| -> Vec<String> { test.head.applications(user).into_iter().map(|it| it.name).collect() };
    assert_eq!((names("ada"), names("bea")), (vec!["other".into(), "search".into()], vec!["search".into()]));
    test.ended(rank(1, 1), Outcome::Exited(0), None);
    assert_eq!(test.submit(application("search", None)), job(4));
    let requeued = test.change(JobChange::Requeue, job(1));
    assert!(
        matches!(&requeued, ChangeResult::Refused(why) if why.message.contains("it is job 4")),
        "{requeued:?}"
    );
}

#[test]
fn children_stay_below_the_ceiling_together() {
    let mut test = running(Some(1));
    let half = test.submit(runner(root(), 500));
    test.submit(runner(root(), 250));
    test.submit(runner(root(), 0));
    let refused = refusal(test.try_submit(runner(root(), 500)));
    assert_eq!(refused.code, RefusalCode::Unsatisfiable);
    assert!(refused.message.contains("hold 0.75 GPUs and this one needs 0.5"), "{refused}");
    test.change(JobChange::Cancel, half);
    test.ended(rank(half.number, 1), Outcome::Signalled(Signal::TERM), Some(StopReason::Cancelled));
    test.submit(runner(root(), 500));
}

#[test]
fn strangers_and_other_programs_are_no_part_of_an_application() {
    let mut test = running(None);
    let by = |user: &str, spec: JobSpec| {
        let submit = Submit { spec, idempotency_key: None, estimate: None };
        (Principal::new(user, Role::Admin), Request::Submit(Box::new(submit)))
    };
    let (bea, request) = by("bea", runner(root(), 0));
    assert_eq!(refusal(test.request(bea, request)).code, RefusalCode::NotAllowed);
    let other = JobSpec { code: Some(program(2)), ..runner(root(), 0) };
    let refused = refusal(test.try_submit(other));
    assert!(refused.message.contains("runs another program"), "{refused}");
    let plain = test.submit(command());
    for nothing in [plain, job(99)] {
        assert_eq!(refusal(test.try_submit(runner(nothing.attempt(1), 0))).code, RefusalCode::NotFound);
    }
    let mut sneaky = runner(root(), 0);
    sneaky.code = None;
    assert_eq!(refusal(test.try_submit(sneaky)).code, RefusalCode::Invalid);
}

#[test]
fn an_ended_child_is_not_queued_again() {
    let mut test = running(None);
    let child = test.submit(runner(root(), 0));
    test.ended(rank(2, 1), Outcome::Exited(0), None);
    let refused = test.change(JobChange::Requeue, child);
    assert!(
        matches!(&refused, ChangeResult::Refused(why) if why.message.contains("launch the application again"))
    );
}

#[test]
fn only_an_application_that_runs_lives() {
    let mut test = running(None);
    assert_eq!(test.head.live_application(root()), Some(ada()));
    assert_eq!(test.head.live_application(job(1).attempt(2)), None);
    let child = test.submit(runner(root(), 0));
    assert_eq!(test.head.live_application(child.attempt(1)), None);
    assert!(test.head.is_child(child, root()) && !test.head.is_child(job(1), root()));
    test.change(JobChange::Cancel, job(1));
    assert_eq!(test.head.live_application(root()), None, "it is being stopped");
    let record = &test.head.applications("ada")[0];
    assert_eq!((record.state, record.attempt), (JobState::Completing, None));
}

#[test]
fn a_lost_node_ends_the_application_with_its_children() {
    let mut test = running(None);
    let child = test.submit(runner(root(), 1_000));
    test.lose(1, 1);
    test.after(Span::from_secs(61));
    assert_eq!(test.state(child), JobState::Cancelled);
    let root_again = test.record(job(1));
    assert_eq!((root_again.attempt, root_again.attempts[1].ranks[0].node.as_str()), (2, "node2"));
}
