//! From an order to the acknowledged end.

use cohabit_types::{AttemptProgress, HeldRank, HeldRankPhase, Outcome, Report, StartFailure, StopReason};

use super::kit::*;
use crate::WorkerEffect;

#[test]
fn a_rank_is_spawned_reported_and_kept_until_its_end_is_acknowledged() {
    TestWorker::linked()
        .run(order(spec(), 1))
        .spawns(&[RANK])
        .until(101)
        .spawned(0)
        .does([started(RANK, 101)])
        .acknowledge(0)
        .does_nothing()
        .until(200)
        .exited(0, Outcome::Exited(3))
        .does([ended(RANK, Outcome::Exited(3), None, 200)])
        .acknowledge(0)
        .does([WorkerEffect::Forget(RANK)])
        .acknowledge(0)
        .does_nothing();
}

#[test]
fn a_repeated_order_starts_nothing_twice_and_repeats_what_has_ended() {
    TestWorker::linked()
        .run(order(spec(), 2))
        .spawns(&[RANK, ATTEMPT.rank(1)])
        .spawned(0)
        .exited(0, Outcome::Exited(0))
        .does([started(RANK, 100), ended(RANK, Outcome::Exited(0), None, 100)])
        .run(order(spec(), 2))
        .does([ended(RANK, Outcome::Exited(0), None, 100)]);
}

#[test]
fn an_order_that_names_an_unknown_device_starts_nothing() {
    let missing = || Outcome::NotStarted(StartFailure::DeviceMissing("gpu-2".into()));
    TestWorker::linked()
        .run(order(spec(), 3))
        .does([0, 1, 2].map(|rank| ended(ATTEMPT.rank(rank), missing(), None, 100)));
}

#[test]
fn a_failed_start_is_an_end() {
    let failure = StartFailure::CommandNotFound("train".into());
    TestWorker::linked()
        .run(order(spec(), 1))
        .spawns(&[RANK])
        .spawn_failed(0, failure.clone())
        .does([ended(RANK, Outcome::NotStarted(failure.clone()), None, 100)])
        .spawn_failed(0, failure)
        .spawned(0)
        .exited(0, Outcome::Exited(0))
        .does_nothing();
}

#[test]
fn a_rank_may_end_before_its_start_is_reported() {
    TestWorker::linked()
        .run(order(spec(), 1))
        .spawns(&[RANK])
        .exited(0, Outcome::Exited(0))
        .does([ended(RANK, Outcome::Exited(0), None, 100)])
        .spawned(0)
        .does_nothing();
}

#[test]
fn the_end_of_one_rank_does_not_stop_the_others() {
    TestWorker::both_running()
        .exited(1, Outcome::Exited(1))
        .does([ended(ATTEMPT.rank(1), Outcome::Exited(1), None, 100)])
        .until(200)
        .does_nothing()
        .stop(StopReason::GangBroken)
        .does(term(RANK, StopReason::GangBroken, 230))
        .exited(0, Outcome::Exited(0))
        .does([ended(RANK, Outcome::Exited(0), Some(StopReason::GangBroken), 200)]);
}

#[test]
fn held_ranks_are_listed_with_their_phase() {
    let test = TestWorker::linked().run(order(spec(), 2)).spawned(1);
    let held = |rank, phase| HeldRank { rank: ATTEMPT.rank(rank), phase };
    assert_eq!(
        test.worker.held(),
        [held(0, HeldRankPhase::Starting), held(1, HeldRankPhase::Running(at(100)))]
    );
    let test = test.exited(1, Outcome::Exited(0)).spawned(0).exited(0, Outcome::Exited(0)).acknowledge(0);
    assert_eq!(test.worker.held(), [held(1, HeldRankPhase::Ended)]);
}

#[test]
fn changed_progress_is_reported_once_in_a_heartbeat() {
    let batch = |progress| {
        WorkerEffect::Report(Report::Progress(vec![AttemptProgress { attempt: ATTEMPT, progress }]))
    };
    TestWorker::running(spec())
        .progress(0, step(1))
        .does_nothing()
        .until(101)
        .does([batch(step(1))])
        .progress(0, step(2))
        .progress(0, step(3))
        .until(104)
        .does_nothing()
        .until(120)
        .does([batch(step(3))]);
}

#[test]
fn the_progress_of_an_attempt_is_that_of_its_lowest_reporting_rank() {
    let batch = |progress| {
        WorkerEffect::Report(Report::Progress(vec![AttemptProgress { attempt: ATTEMPT, progress }]))
    };
    TestWorker::both_running()
        .progress(1, step(5))
        .until(101)
        .does([batch(step(5))])
        .progress(0, step(4))
        .progress(1, step(6))
        .until(110)
        .does([batch(step(4))])
        .progress(1, step(7))
        .until(120)
        .does_nothing();
}

#[test]
fn the_last_progress_is_part_of_the_end_report() {
    TestWorker::running(spec()).progress(0, step(9)).exited(0, Outcome::Exited(0)).until(200).does([
        WorkerEffect::Report(Report::Ended {
            rank: RANK,
            outcome: Outcome::Exited(0),
            stopped: None,
            progress: Some(step(9)),
            at: at(100),
            usage: Vec::new(),
        }),
    ]);
}

#[test]
fn a_start_that_takes_too_long_is_killed_until_it_has_ended() {
    let slow = || StartFailure::Other("it was not started in time".into());
    TestWorker::linked()
        .run(order(spec(), 1))
        .spawns(&[RANK])
        .until(399)
        .does_nothing()
        .until(410)
        .does([WorkerEffect::Kill(RANK), WorkerEffect::Kill(RANK)])
        .spawn_failed(0, slow())
        .does([ended(RANK, Outcome::NotStarted(slow()), None, 410)])
        .until(1_000)
        .does_nothing();
}

#[test]
fn a_start_outlives_neither_a_stop_nor_the_time_limit_for_long() {
    let failure = || StartFailure::Other("it was not started in time".into());
    let stopped = |why| {
        move |test: TestWorker| {
            test.does([WorkerEffect::Kill(RANK)]).spawn_failed(0, failure()).does([
                WorkerEffect::Explain(RANK, why),
                ended(RANK, Outcome::NotStarted(failure()), Some(why), 120),
            ])
        }
    };
    let limited = TestWorker::linked().run(order(limited(10, Some(60)), 1)).spawns(&[RANK]);
    stopped(StopReason::TimeLimit)(limited.until(119).does_nothing().until(120));
    let cancelled = TestWorker::linked().run(order(spec(), 1)).spawns(&[RANK]).until(110);
    let cancelled = cancelled.stop(StopReason::Cancelled).until(119).does_nothing();
    stopped(StopReason::Cancelled)(cancelled.until(120));
}

#[test]
fn a_rank_that_starts_after_its_time_limit_is_stopped_at_once() {
    TestWorker::linked()
        .run(order(limited(10, None), 1))
        .spawns(&[RANK])
        .until(115)
        .spawned(0)
        .does([vec![started(RANK, 115)], term(RANK, StopReason::TimeLimit, 145)].concat());
}
