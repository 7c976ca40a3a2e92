//! A head that continues from a backup gives no number again.

use cohabit_types::{
    HeldRank, HeldRankPhase, JobChange, JobId, JobSpec, JobState, Order, Outcome, RankId, Report,
    RetryPolicy, Span, StopReason,
};

use super::kit::{TestHead, array, command, inventory, job, key, rank};
use crate::{Event, Head};

fn restore(test: &mut TestHead, last_number: u64, attempt_gap: u32) {
    test.event(Event::BackupRestored { last_number, attempt_gap });
}

fn attempt_of(test: &TestHead, id: JobId) -> u32 {
    test.head.jobs[&id].attempt_count()
}

#[test]
fn numbers_of_jobs_go_on_behind_what_may_have_been_given_out() {
    let mut test = TestHead::new();
    assert_eq!(test.submit(command()), job(1));
    restore(&mut test, 5_000_000, 1_000);
    assert_eq!(test.submit(command()), job(5_000_001));
    restore(&mut test, 7, 1_000);
    assert_eq!(test.submit(command()), job(5_000_002), "a number never falls");
    let mut replayed = Head::new();
    for (at, event) in &test.events {
        replayed.handle(*at, event.clone(), &mut Vec::new());
    }
    assert_eq!(replayed, test.head);
    test.head.check().unwrap();
}

#[test]
fn attempts_of_jobs_in_the_backup_jump_once_and_those_of_new_jobs_begin_at_one() {
    let mut test = TestHead::with_devices(4);
    let retry = RetryPolicy { limit: 5, ..RetryPolicy::default() };
    let (old, members) = (test.submit(JobSpec { retry, ..command() }), test.submit(array(0, 1, None)));
    restore(&mut test, 100, 1_000);
    test.after(Span::from_secs(1));
    test.ended(rank(old.number, 1), Outcome::Exited(1), None);
    test.after(Span::from_secs(600));
    assert_eq!(attempt_of(&test, old), 1_002);
    test.ended(rank(old.number, 1_002), Outcome::Exited(1), None);
    test.after(Span::from_secs(600));
    assert_eq!(attempt_of(&test, old), 1_003, "the numbers jump once");
    let new = test.submit(command());
    assert_eq!((new, attempt_of(&test, new)), (job(101), 1));
    let member = JobId::member(members.number, 1);
    test.ended(member.attempt(1).rank(0), Outcome::Exited(0), None);
    test.change(JobChange::Requeue, member);
    assert_eq!(attempt_of(&test, member), 1_002, "also where it had ended");
    restore(&mut test, 200, 1_000);
    test.after(Span::from_secs(1));
    test.ended(rank(old.number, 1_003), Outcome::Exited(1), None);
    test.after(Span::from_secs(600));
    assert_eq!(attempt_of(&test, old), 3_004, "behind what either predecessor may have used");
    test.head.check().unwrap();
    let (rest, parts) = test.head.split_for_snapshot(1);
    assert_eq!(Head::from_snapshot(rest, parts.collect()).unwrap(), test.head);
}

/// The head before it went on: job 1 had a second attempt, and there was a job 2.
#[test]
fn a_worker_stops_what_the_backup_does_not_know_and_its_end_is_not_that_of_another_attempt() {
    let mut test = TestHead::with_devices(2);
    let known = test.submit(command());
    restore(&mut test, 100, 1_000);
    test.effects();
    let held =
        [rank(1, 2), rank(2, 1)].map(|rank| HeldRank { rank, phase: HeldRankPhase::Running(test.now) });
    test.event(Event::Joined(key(1, 2), inventory(1, 2, held.to_vec())));
    test.planned();
    let stops: Vec<_> =
        test.orders().into_iter().filter(|(_, order)| matches!(order, Order::Stop { .. })).collect();
    let stop = |rank: RankId| (key(1, 2), Order::Stop { attempt: rank.attempt, why: StopReason::Superseded });
    assert_eq!(stops, [stop(rank(1, 2)), stop(rank(2, 1))]);
    test.after(Span::from_secs(600));
    let new = test.submit(command());
    assert_eq!((attempt_of(&test, known), new), (1_002, job(101)));
    for rank in [rank(1, 2), rank(2, 1)] {
        let report = Report::Ended {
            rank,
            outcome: Outcome::Exited(0),
            stopped: Some(StopReason::Superseded),
            progress: None,
            at: test.now,
            usage: Vec::new(),
        };
        test.event(Event::Report(key(1, 2), report));
        assert!(test.orders().contains(&(key(1, 2), Order::Acknowledge(rank))));
    }
    assert_eq!((test.state(known), test.state(new)), (JobState::Running, JobState::Running));
}
