//! The life of single jobs.

use cohabit_types::{
    ChangeResult, Dependency, DependencyKind, HeldRank, HeldRankPhase, JobChange, JobEventKind, JobId,
    JobSpec, JobState, Order, Outcome, ReasonCode, RetryPolicy, Signal, Span, StartFailure, StopReason,
};

use super::kit::*;

const ALREADY: ChangeResult = ChangeResult::Already;

#[test]
fn a_job_runs_and_completes_with_four_messages() {
    let mut test = TestHead::with_devices(1);
    let id = test.submit(gpus(1));
    let runs = test.runs();
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0].attempt, id.attempt(1));
    assert_eq!(runs[0].ranks[0].devices[0].as_str(), "gpu-0");
    assert_eq!(test.state(id), JobState::Running);
    test.started(rank(1, 1));
    test.effects();
    test.ended(rank(1, 1), Outcome::Exited(0), None);
    assert_eq!(test.orders(), [(key(1, 1), Order::Acknowledge(rank(1, 1)))], "and nothing else is ordered");
    assert_eq!(test.state(id), JobState::Completed);
    assert_eq!(test.record(id).shell_code(), Some(0));
}

#[test]
fn jobs_wait_in_the_queue_until_a_device_is_free() {
    let mut test = TestHead::with_devices(1);
    let (first, second) = (test.submit(gpus(1)), test.submit(gpus(1)));
    assert_eq!(test.state(second), JobState::Pending);
    assert_eq!(test.record(second).reason_code, ReasonCode::WaitingForDevices);
    assert_eq!(
        test.record(second).reason,
        "needs 1 free GPU on one node; the best node has 0 free. First in the queue"
    );
    test.ended(first.attempt(1).rank(0), Outcome::Exited(0), None);
    assert_eq!(test.state(second), JobState::Running);
}

#[test]
fn two_halves_share_a_device_and_a_third_waits() {
    let mut test = TestHead::with_devices(1);
    let jobs: Vec<_> = (0..3).map(|_| test.submit(part(500))).collect();
    let states: Vec<_> = jobs.iter().map(|id| test.state(*id)).collect();
    assert_eq!(states, [JobState::Running, JobState::Running, JobState::Pending]);
    assert_eq!(test.record(jobs[0]).sharing_with, [jobs[1]]);
}

#[test]
fn a_failing_job_is_retried_after_growing_pauses_and_then_fails() {
    let mut test = TestHead::with_devices(1);
    let retry = RetryPolicy { limit: 2, backoff: Span::from_secs(5), backoff_cap: Span::from_secs(60) };
    let id = test.submit(JobSpec { retry, ..gpus(1) });
    test.ended(rank(1, 1), Outcome::Exited(3), None);
    assert_eq!(
        (test.state(id), test.record(id).reason_code),
        (JobState::Pending, ReasonCode::WaitingForRetry)
    );
    test.after(Span::from_secs(4));
    assert_eq!(test.state(id), JobState::Pending);
    test.after(Span::from_secs(1));
    assert_eq!(test.state(id), JobState::Running);
    test.ended(rank(1, 2), Outcome::Signalled(Signal::KILL), None);
    test.after(Span::from_secs(10));
    test.ended(rank(1, 3), Outcome::Exited(9), None);
    let record = test.record(id);
    assert_eq!((record.state, record.exit_code, record.attempts.len()), (JobState::Failed, Some(9), 3));
    assert_eq!(record.shell_code(), Some(9));
    assert!(record.reason.contains("it exited with code 9 on node1"), "{}", record.reason);
    assert!(record.reason.contains("2 of 2 retries were used"), "{}", record.reason);
}

#[test]
fn outcomes_map_to_states_reasons_and_exit_codes() {
    let not_found = Outcome::NotStarted(StartFailure::CommandNotFound("train".into()));
    let not_executable = Outcome::NotStarted(StartFailure::NotExecutable("train".into()));
    let no_workdir = Outcome::NotStarted(StartFailure::WorkdirMissing("/x".into()));
    for (outcome, stopped, state, reason, code) in [
        (Outcome::Exited(4), None, JobState::Failed, ReasonCode::ExitCode, 4),
        (Outcome::Signalled(Signal(11)), None, JobState::Failed, ReasonCode::Signalled, 139),
        (not_found, None, JobState::Failed, ReasonCode::CommandNotFound, 127),
        (not_executable, None, JobState::Failed, ReasonCode::NotExecutable, 126),
        (no_workdir, None, JobState::Failed, ReasonCode::WorkdirMissing, 125),
        (Outcome::Exited(0), Some(StopReason::TimeLimit), JobState::Timeout, ReasonCode::TimeLimit, 124),
    ] {
        let mut test = TestHead::with_devices(1);
        let id = test.submit(gpus(1));
        test.ended(rank(1, 1), outcome, stopped);
        let record = test.record(id);
        assert_eq!((record.state, record.reason_code, record.shell_code()), (state, reason, Some(code)));
    }
}

#[test]
fn a_pending_job_is_cancelled_at_once_and_a_running_one_by_its_worker() {
    let mut test = TestHead::with_devices(1);
    let (running, pending) = (test.submit(gpus(1)), test.submit(gpus(1)));
    assert_eq!(test.change(JobChange::Cancel, pending), ChangeResult::Done);
    assert_eq!(test.state(pending), JobState::Cancelled);
    test.effects();
    assert_eq!(test.change(JobChange::Cancel, running), ChangeResult::Done);
    let stop = Order::Stop { attempt: running.attempt(1), why: StopReason::Cancelled };
    assert_eq!(test.orders(), [(key(1, 1), stop)]);
    assert_eq!(test.state(running), JobState::Completing);
    assert_eq!(test.change(JobChange::Cancel, running), ChangeResult::Already);
    test.ended(rank(1, 1), Outcome::Exited(0), Some(StopReason::Cancelled));
    assert_eq!(test.state(running), JobState::Cancelled);
    assert_eq!(test.change(JobChange::Cancel, running), ChangeResult::Already);
}

#[test]
fn a_pending_job_is_killed_as_it_is_cancelled_and_a_running_one_by_its_worker() {
    let mut test = TestHead::with_devices(1);
    let (running, pending) = (test.submit(gpus(1)), test.submit(gpus(1)));
    assert_eq!(test.change(JobChange::Kill, pending), ChangeResult::Done);
    assert_eq!((test.state(pending), test.change(JobChange::Kill, pending)), (JobState::Cancelled, ALREADY));
    test.effects();
    assert_eq!(test.change(JobChange::Kill, running), ChangeResult::Done);
    let kill = Order::Stop { attempt: running.attempt(1), why: StopReason::Killed };
    assert_eq!(test.orders(), [(key(1, 1), kill)]);
    assert_eq!(test.record(running).reason, "it is being stopped on node1 because it was cancelled by force");
    for change in [JobChange::Kill, JobChange::Cancel] {
        assert_eq!(test.change(change, running), ALREADY);
    }
    assert!(matches!(test.change(JobChange::Requeue, running), ChangeResult::Refused(_)));
    assert_eq!(test.orders(), []);
    test.ended(rank(1, 1), Outcome::Signalled(Signal::KILL), Some(StopReason::Killed));
    let record = test.record(running);
    assert_eq!((record.state, record.reason_code), (JobState::Cancelled, ReasonCode::CancelledByUser));
    assert_eq!(record.attempts[0].stopped, Some(StopReason::Killed));
    assert_eq!(record.reason, "it was cancelled by force after 0 ms");
    assert_eq!(test.change(JobChange::Kill, running), ALREADY);
}

#[test]
fn a_kill_follows_a_stop_that_has_begun_and_decides_the_end() {
    for first in [JobChange::Cancel, JobChange::Requeue] {
        let mut test = TestHead::with_devices(1);
        let id = test.submit(gpus(1));
        test.change(first, id);
        test.effects();
        assert_eq!(test.change(JobChange::Kill, id), ChangeResult::Done);
        let kill = Order::Stop { attempt: id.attempt(1), why: StopReason::Killed };
        assert_eq!(test.orders(), [(key(1, 1), kill.clone())]);
        test.lose(1, 1);
        let explained = test.reader().explain(id).unwrap().sentences.join(" ");
        assert!(
            explained.contains("Node node1 is unreachable: the job is stopped there when"),
            "{explained}"
        );
        let held = HeldRank { rank: rank(1, 1), phase: HeldRankPhase::Running(test.now) };
        test.rejoin(1, 2, vec![held]);
        assert!(test.orders().contains(&(key(1, 2), kill)));
        // The worker names the reason for which its stop began.
        test.ended_on(key(1, 2), rank(1, 1), Outcome::Signalled(Signal::KILL), Some(StopReason::Cancelled));
        assert_eq!(test.state(id), JobState::Cancelled);
        assert_eq!(test.record(id).attempts[0].stopped, Some(StopReason::Killed));
        let history: Vec<String> = test.head.job_history(id).iter().map(ToString::to_string).collect();
        let killed = "attempt 1 is being stopped because it was cancelled by force (by ada)";
        assert!(history.iter().any(|event| event == killed), "{history:?}");
    }
}

#[test]
fn a_job_that_completes_before_the_cancellation_reaches_it_is_completed() {
    let mut test = TestHead::with_devices(1);
    let id = test.submit(gpus(1));
    test.change(JobChange::Cancel, id);
    test.ended(rank(1, 1), Outcome::Exited(0), None);
    assert_eq!(test.state(id), JobState::Completed);
}

#[test]
fn a_requeued_job_runs_again_with_the_next_attempt() {
    let mut test = TestHead::with_devices(1);
    let id = test.submit(gpus(1));
    test.change(JobChange::Requeue, id);
    test.ended(rank(1, 1), Outcome::Signalled(Signal::TERM), Some(StopReason::Requeued));
    assert_eq!((test.state(id), test.record(id).attempt), (JobState::Running, 2));
    test.ended(rank(1, 2), Outcome::Exited(0), None);
    assert_eq!(test.change(JobChange::Requeue, id), ChangeResult::Done);
    assert_eq!((test.state(id), test.record(id).attempt), (JobState::Running, 3));
}

#[test]
fn a_long_history_keeps_its_first_and_latest_events() {
    let mut test = TestHead::with_devices(1);
    let id = test.submit(gpus(1));
    // It was submitted, and placed for the first time.
    let first = test.head.job_history(id);
    for attempt in 1..=100 {
        let before = test.head.job_history(id);
        test.change(JobChange::Requeue, id);
        test.ended(rank(1, attempt), Outcome::Signalled(Signal::TERM), Some(StopReason::Requeued));
        let history = test.head.job_history(id);
        assert!(history.len() <= 101 && history[..2] == first && history.contains(&before[before.len() - 1]));
    }
    assert!(test.head.job_history(id).len() >= 75);
}

#[test]
fn only_the_latest_attempts_are_kept_and_what_the_others_had_still_counts() {
    let mut test = TestHead::with_devices(1);
    let id = test.submit(gpus(1));
    for attempt in 1..=300 {
        test.after(Span::from_secs(10));
        test.change(JobChange::Requeue, id);
        test.ended(rank(1, attempt), Outcome::Signalled(Signal::TERM), Some(StopReason::Requeued));
    }
    assert_eq!(test.head.jobs[&id].attained().held, Span::from_secs(3_000));
    let attempts: Vec<u32> = test.record(id).attempts.iter().map(|it| it.attempt).collect();
    assert_eq!(attempts, (45..=301).collect::<Vec<_>>(), "the latest 256, and the live one");
}

/// A script that holds and releases an array a hundred times has told nothing that the last time does not.
#[test]
fn of_many_holds_and_releases_in_a_row_the_latest_are_kept() {
    let mut test = TestHead::with_devices(1);
    let begin = Some(test.now + Span::from_secs(1_000));
    let id = test.submit(JobSpec { begin, ..gpus(1) });
    let before = test.head.usage("ada").bytes;
    for _ in 0..50 {
        test.after(Span::from_secs(1));
        test.change(JobChange::Hold, id);
        test.change(JobChange::Release, id);
    }
    let history: Vec<_> = test.head.job_history(id).into_iter().map(|event| (event.at, event.kind)).collect();
    assert_eq!(history[1..], [(test.now, JobEventKind::Held), (test.now, JobEventKind::Released)]);
    let grown = test.head.usage("ada").bytes - before;
    assert!((100..1_000).contains(&grown), "{grown}");
}

#[test]
fn a_cancellation_replaces_a_requeue_that_has_begun() {
    let mut test = TestHead::with_devices(1);
    let id = test.submit(gpus(1));
    test.change(JobChange::Requeue, id);
    assert_eq!(test.change(JobChange::Cancel, id), ChangeResult::Done);
    test.ended(rank(1, 1), Outcome::Signalled(Signal::TERM), Some(StopReason::Requeued));
    assert_eq!(test.state(id), JobState::Cancelled);
}

#[test]
fn a_held_job_waits_for_its_release() {
    let mut test = TestHead::with_devices(1);
    let id = test.submit(JobSpec { held: true, ..gpus(1) });
    assert_eq!((test.state(id), test.record(id).reason_code), (JobState::Held, ReasonCode::HeldByUser));
    assert_eq!(test.change(JobChange::Release, id), ChangeResult::Done);
    assert_eq!(test.state(id), JobState::Running);
    assert!(matches!(test.change(JobChange::Hold, id), ChangeResult::Refused(_)));
}

#[test]
fn a_job_does_not_start_before_its_begin_time() {
    let mut test = TestHead::with_devices(1);
    let begin = Some(test.now + Span::from_secs(100));
    let id = test.submit(JobSpec { begin, ..gpus(1) });
    assert_eq!(test.record(id).reason_code, ReasonCode::WaitingForBegin);
    test.after(Span::from_secs(99));
    assert_eq!(test.state(id), JobState::Pending);
    test.after(Span::from_secs(1));
    assert_eq!(test.state(id), JobState::Running);
}

#[test]
fn larger_priorities_go_first() {
    let mut test = TestHead::with_devices(1);
    let running = test.submit(gpus(1));
    let (low, high) = (test.submit(gpus(1)), test.submit(JobSpec { priority: 5, ..gpus(1) }));
    test.ended(running.attempt(1).rank(0), Outcome::Exited(0), None);
    assert_eq!((test.state(low), test.state(high)), (JobState::Pending, JobState::Running));
}

fn after(job: JobId, when: DependencyKind) -> JobSpec {
    JobSpec { depends_on: vec![Dependency { job, when }], ..gpus(1) }
}

#[test]
fn dependencies_decide_by_how_the_earlier_job_ended() {
    for (exit, expected) in [
        (0, [JobState::Pending, JobState::Pending, JobState::Cancelled]),
        (1, [JobState::Cancelled, JobState::Pending, JobState::Pending]),
    ] {
        let mut test = TestHead::with_devices(1);
        let first = test.submit(gpus(1));
        let later = [DependencyKind::AfterOk, DependencyKind::AfterAny, DependencyKind::AfterNotOk]
            .map(|when| test.submit(after(first, when)));
        assert_eq!(test.record(later[0]).reason_code, ReasonCode::WaitingForDependency);
        let blocker = test.submit(JobSpec { priority: 9, ..gpus(1) });
        test.ended(rank(1, 1), Outcome::Exited(exit), None);
        assert_eq!(test.state(blocker), JobState::Running);
        assert_eq!(later.map(|id| test.state(id)), expected);
    }
}

/// One that names the same job twice has to see both conditions met, which opposite ones never are.
#[test]
fn opposite_conditions_on_one_job_are_never_met() {
    let mut test = TestHead::with_devices(1);
    let first = test.submit(gpus(1));
    let on_first = |when| Dependency { job: first, when };
    let both = vec![on_first(DependencyKind::AfterOk), on_first(DependencyKind::AfterNotOk)];
    let later = test.submit(JobSpec { depends_on: both, ..gpus(1) });
    assert!(test.record(later).reason.contains("waiting for job 1 to end"), "{}", test.record(later).reason);
    test.ended(rank(1, 1), Outcome::Exited(0), None);
    assert_eq!(test.state(later), JobState::Cancelled);
}

/// As with Slurm: the request waives the dependency that failed, and no other.
#[test]
fn a_requeued_job_waits_for_those_of_its_dependencies_that_have_not_ended() {
    let mut test = TestHead::with_devices(2);
    let (failing, running) = (test.submit(gpus(1)), test.submit(gpus(1)));
    let on = |job| Dependency { job, when: DependencyKind::AfterOk };
    let depends_on = vec![on(failing), on(running)];
    let later = test.submit(JobSpec { depends_on: depends_on.clone(), ..gpus(1) });
    let array = test.submit(JobSpec { depends_on, ..array(1, 2, None) });
    test.ended(rank(1, 1), Outcome::Exited(1), None);
    assert_eq!([later, array].map(|job| test.state(job)), [JobState::Cancelled; 2]);
    assert_eq!(test.change(JobChange::Requeue, later), ChangeResult::Done);
    assert_eq!(test.change(JobChange::Requeue, array), ChangeResult::Done);
    let record = test.record(later);
    assert_eq!((record.state, record.reason_code), (JobState::Pending, ReasonCode::WaitingForDependency));
    assert_eq!(record.reason, "it is waiting for job 2 to end");
    assert_eq!(test.state(JobId::member(array.number, 1)), JobState::Pending);
    test.head.check().unwrap();
    test.ended(rank(2, 1), Outcome::Exited(0), None);
    assert_eq!(test.state(later), JobState::Running);
    assert_eq!(test.state(JobId::member(array.number, 1)), JobState::Running);
    test.head.check().unwrap();
    // Once it has run, what it waited for does not count again, even where that is to run again.
    test.ended(rank(later.number, 1), Outcome::Exited(0), None);
    test.change(JobChange::Requeue, running);
    test.change(JobChange::Requeue, later);
    assert_ne!(test.record(later).reason_code, ReasonCode::WaitingForDependency);
}

#[test]
fn a_requeued_job_whose_other_dependency_fails_too_is_cancelled_again() {
    let mut test = TestHead::with_devices(2);
    let (first, second) = (test.submit(gpus(1)), test.submit(gpus(1)));
    let on = |job| Dependency { job, when: DependencyKind::AfterOk };
    let later = test.submit(JobSpec { depends_on: vec![on(first), on(second)], ..gpus(1) });
    test.ended(rank(1, 1), Outcome::Exited(1), None);
    test.change(JobChange::Requeue, later);
    test.ended(rank(2, 1), Outcome::Exited(1), None);
    let record = test.record(later);
    assert_eq!((record.state, record.reason_code), (JobState::Cancelled, ReasonCode::DependencyFailed));
    test.change(JobChange::Requeue, later);
    assert_eq!(test.state(later), JobState::Running, "all of them are waived now");
    test.head.check().unwrap();
}

/// What waits no longer keeps nothing: neither the index of those who wait, nor the work of the next end.
#[test]
fn a_submission_that_waits_no_longer_leaves_no_edges() {
    let mut test = TestHead::with_devices(1);
    let earlier: Vec<JobId> = (0..3).map(|_| test.submit(JobSpec { held: true, ..gpus(1) })).collect();
    let on = |when| earlier.iter().map(|job| Dependency { job: *job, when }).collect();
    let failing = test.submit(JobSpec { depends_on: on(DependencyKind::AfterOk), ..gpus(1) });
    let cancelled = test.submit(JobSpec { depends_on: on(DependencyKind::AfterAny), ..gpus(1) });
    let waiting = test.submit(JobSpec { depends_on: on(DependencyKind::AfterAny), ..gpus(1) });
    let edges = |test: &TestHead| test.head.split_for_snapshot(1).0.dependents;
    assert_eq!(edges(&test).values().map(Vec::len).sum::<usize>(), 9);
    test.change(JobChange::Cancel, cancelled);
    test.change(JobChange::Cancel, earlier[0]);
    assert_eq!(test.record(failing).reason_code, ReasonCode::DependencyFailed);
    let left = earlier[1..].iter().map(|job| (*job, vec![waiting.number]));
    assert_eq!(edges(&test), left.collect());
    let (rest, parts) = test.head.split_for_snapshot(1);
    assert_eq!(crate::Head::from_snapshot(rest, parts.collect()).unwrap(), test.head);
}

#[test]
fn a_long_chain_of_dependents_is_cancelled_without_deep_recursion() {
    let mut test = TestHead::with_devices(1);
    let first = test.submit(gpus(1));
    let mut last = first;
    for _ in 0..2_000 {
        let spec = after(last, DependencyKind::AfterOk);
        let submit = cohabit_types::Submit { spec, idempotency_key: None, estimate: None };
        let event = crate::Event::Client(
            cohabit_types::ClientRequestId(1),
            ada(),
            cohabit_types::Request::Submit(Box::new(submit)),
        );
        test.head.handle(test.now, event, &mut Vec::new());
        last = job(last.number + 1);
    }
    test.change(JobChange::Cancel, first);
    test.ended(rank(1, 1), Outcome::Signalled(Signal::TERM), Some(StopReason::Cancelled));
    assert_eq!(test.state(last), JobState::Cancelled);
    let record = test.record(last);
    assert_eq!(record.reason_code, ReasonCode::DependencyFailed);
    let before = last.number - 1;
    assert_eq!(record.reason, format!("it was to run only if job {before} completes, which is CANCELLED"));
}

#[test]
fn explanations_are_sentences_with_numbers() {
    let mut test = TestHead::with_devices(1);
    let running = test.submit(gpus(1));
    test.submit(gpus(1));
    let waiting = test.submit(gpus(1));
    test.after(Span::from_secs(90));
    let sentences_of = |id| test.reader().sentences(id).unwrap();
    insta::assert_json_snapshot!(vec![sentences_of(running), sentences_of(waiting)], @r#"
    [
      [
        "Job 1 is RUNNING; attempt 1 started 1 min 30 s ago.",
        "It is running on node1. (running)",
        "Expected end: unknown, because it does not report how many steps it takes, and fewer than 3 jobs like it have completed."
      ],
      [
        "Job 3 is PENDING; it was submitted 1 min 30 s ago.",
        "Needs 1 free GPU on one node; the best node has 0 free. 1 job is ahead in the queue. (waiting_for_devices)",
        "1 job is running.",
        "Expected run time: unknown, because fewer than 3 jobs like it have completed."
      ]
    ]
    "#);
}

#[test]
fn the_end_of_a_job_ignores_dependents_that_were_forgotten() {
    let mut test = TestHead::with_devices(1);
    let first = test.submit(gpus(1));
    let waiting = test.submit(after(first, DependencyKind::AfterOk));
    test.change(JobChange::Cancel, waiting);
    test.after(Span::from_secs(86_400));
    assert!(test.head.at(test.now).record(waiting).is_none());
    test.ended(rank(1, 1), Outcome::Exited(0), None);
    assert_eq!(test.state(first), JobState::Completed);
}

/// Jobs that ended are kept for a day.
#[test]
fn an_ended_job_keeps_no_memory_that_only_a_live_one_needs() {
    let mut test = TestHead::with_devices(1);
    let (id, _) = (test.submit(gpus(1)), test.submit(gpus(1)));
    test.started(rank(1, 1));
    test.ended(rank(1, 1), Outcome::Exited(0), None);
    let ended = &test.head.jobs[&id];
    let attempt = &ended.ended_attempts[0].attempt;
    assert_eq!((ended.ended_attempts.capacity(), attempt.ranks.capacity()), (1, 1));
    assert_eq!(ended.events.capacity(), ended.events.len());
    assert_eq!(test.head.volatile.traits.keys().collect::<Vec<_>>(), [&2], "those of the job that runs");
    test.change(JobChange::Requeue, id);
    assert_eq!(test.head.volatile.traits.len(), 2);
}
