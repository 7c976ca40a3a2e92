//! What goes into the feed, and what does not.

use cohabit_types::{
    Condition, DeviceId, FeedEvent, FeedKind, Health, JobChange, JobId, JobSpec, JobState, NotifyRequest,
    Outcome, ReasonCode, Report, RetryPolicy, Signal, Span, StopReason,
};

use super::kit::*;
use crate::interface::Event;

/// What was added to the feed since the last look, in words.
fn told(test: &mut TestHead) -> Vec<String> {
    let word = |event: FeedEvent| match (event.job, event.node) {
        (Some(job), _) => format!("{} {}", event.kind, job.id),
        (None, Some(node)) => format!("{} {node}", event.kind),
        (None, None) => event.kind.to_string(),
    };
    test.feed().into_iter().map(word).collect()
}

#[test]
fn a_job_is_told_of_when_it_starts_and_ends() {
    let mut test = TestHead::with_devices(1);
    let requests = [(FeedKind::Fail, Some("mail")), (FeedKind::Stall, None), (FeedKind::End, None)];
    let requests = requests.map(|(event, it)| NotifyRequest { event, channel: it.map(str::to_owned) });
    test.submit(JobSpec { notify: requests.to_vec(), ..gpus(1) });
    assert_eq!(told(&mut test), [""; 0], "it was only placed");
    test.started(rank(1, 1));
    assert_eq!(told(&mut test), ["start 1"]);
    test.ended(rank(1, 1), Outcome::Exited(3), None);
    let [ended] = test.feed().try_into().unwrap();
    assert_eq!((ended.kind, ended.at), (FeedKind::Fail, test.now));
    let job = ended.job.unwrap();
    assert_eq!((job.name.as_str(), job.user.as_str(), job.state), ("train", "ada", JobState::Failed));
    assert_eq!((job.reason_code, job.exit_code, job.attempt), (ReasonCode::ExitCode, Some(3), 1));
    assert_eq!(ended.text, job.reason);
    let asked: Vec<String> = job.requests.iter().map(ToString::to_string).collect();
    assert_eq!(asked, ["fail@mail", "end"], "those that this entry answers");
}

#[test]
fn every_end_has_its_kind() {
    for (outcome, stopped, kind) in [
        (Outcome::Exited(0), None, "end 1"),
        (Outcome::Signalled(Signal::KILL), None, "fail 1"),
        (Outcome::Signalled(Signal::TERM), Some(StopReason::TimeLimit), "timeout 1"),
        (Outcome::Signalled(Signal::TERM), Some(StopReason::Cancelled), "end 1"),
        (Outcome::OutOfMemory { limit: None, peak: None, code: 137 }, None, "oom 1"),
    ] {
        let mut test = TestHead::with_devices(1);
        test.submit(gpus(1));
        test.ended(rank(1, 1), outcome.clone(), stopped);
        assert_eq!(told(&mut test), [kind], "{outcome:?}");
    }
}

#[test]
fn an_attempt_that_follows_a_failure_or_a_more_urgent_job_is_told() {
    let mut test = TestHead::with_devices(1);
    test.submit(JobSpec { retry: RetryPolicy { limit: 1, ..RetryPolicy::default() }, ..gpus(1) });
    test.ended(rank(1, 1), Outcome::Exited(1), None);
    let [requeued] = test.feed().try_into().unwrap();
    assert_eq!(requeued.kind, FeedKind::Requeue);
    assert!(requeued.text.starts_with("queued again after attempt 1"), "{}", requeued.text);
    let mut test = TestHead::with_devices(1);
    test.submit(gpus(1));
    test.ended(rank(1, 1), Outcome::Signalled(Signal::TERM), Some(StopReason::Preempted));
    assert_eq!(told(&mut test), ["reclaim 1"]);
}

#[test]
fn a_stall_is_told_once() {
    let mut test = TestHead::with_devices(1);
    test.submit(gpus(1));
    let attempt = JobId::new(1).attempt(1);
    let stalled = Report::Stalled { attempt, quiet_for: Span::from_secs(600), step: Some(7) };
    for _ in 0..2 {
        test.event(Event::Report(key(1, 1), stalled.clone()));
    }
    assert_eq!(told(&mut test), ["stall 1"]);
}

#[test]
fn an_array_is_told_of_as_a_whole() {
    let mut test = TestHead::with_devices(1);
    test.submit(array(1, 3, None));
    for index in 1..=3 {
        let rank = JobId::member(1, index).attempt(1).rank(0);
        test.started(rank);
        test.ended(rank, Outcome::Exited(i32::from(index == 2)), None);
    }
    let [start, end] = test.feed().try_into().unwrap();
    assert_eq!((start.kind, start.job.unwrap().id), (FeedKind::Start, JobId::new(1)));
    let job = end.job.unwrap();
    assert_eq!((end.kind, job.id, job.state), (FeedKind::Fail, JobId::new(1), JobState::Failed));
    let members = job.array.unwrap();
    assert_eq!((members.members, members.count(JobState::Completed)), (3, 2));
}

#[test]
fn a_gang_starts_once() {
    let mut test = TestHead::with_devices(2);
    test.submit(JobSpec { launch: cohabit_types::LaunchMode::PerGpu, ..gpus(2) });
    let attempt = JobId::new(1).attempt(1);
    test.started(attempt.rank(1));
    test.started(attempt.rank(0));
    assert_eq!(told(&mut test), ["start 1"]);
}

#[test]
fn a_node_is_told_of_when_it_is_given_up_and_when_it_is_back() {
    let mut test = TestHead::with_devices(1);
    test.submit(gpus(1));
    test.started(rank(1, 1));
    test.lose(1, 1);
    assert_eq!(told(&mut test), ["start 1"], "it may come back");
    test.after(Span::from_secs(3_600));
    assert_eq!(told(&mut test), ["node-lost node1", "requeue 1"]);
    test.rejoin(1, 2, vec![]);
    assert_eq!(told(&mut test), ["node-back node1"]);
    test.rejoin(1, 3, vec![]);
    assert_eq!(told(&mut test), ["requeue 1"], "a node that was not given up is not told of");
}

#[test]
fn a_gpu_is_told_of_when_somebody_has_to_look_after_it() {
    let mut test = TestHead::with_devices(2);
    let device = test.head.node_records()[0].devices[0].device.id.clone();
    let mut report = |health| {
        let condition = Condition { health, ..Condition::default() };
        test.event(Event::Report(key(1, 1), Report::Condition { device: device.clone(), condition }));
        test.feed().into_iter().map(|it| (it.kind, it.device.unwrap(), it.text)).collect::<Vec<_>>()
    };
    let none: Vec<(FeedKind, DeviceId, String)> = Vec::new();
    assert_eq!(report(Health::Recovering("reset".into())), none);
    let fenced = (FeedKind::GpuFenced, device.clone(), "Xid 79".to_owned());
    assert_eq!(report(Health::Fenced("Xid 79".into())), [fenced]);
    assert_eq!(report(Health::Fenced("Xid 79, again".into())), none);
    let back = (FeedKind::GpuBack, device.clone(), "it is in service again".to_owned());
    assert_eq!(report(Health::Well), [back]);
}

#[test]
fn texts_of_the_feed_are_bounded() {
    let mut test = TestHead::with_devices(1);
    let name = "x".repeat(100_000);
    test.submit(JobSpec { name, ..gpus(1) });
    test.change(JobChange::Cancel, job(1));
    test.ended(rank(1, 1), Outcome::Lost("y".repeat(100_000)), Some(StopReason::Cancelled));
    let [ended] = test.feed().try_into().unwrap();
    assert!(ended.weight() < 4_000, "{}", ended.weight());
}
