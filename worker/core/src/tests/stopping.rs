//! Stops: their steps, their times, and the reported reason.

use cohabit_types::{Outcome, Signal, Span, StopReason};

use super::kit::*;
use crate::{StopStep, WorkerEffect};

const TERMINATED: Outcome = Outcome::Signalled(Signal::TERM);

#[test]
fn a_stop_terminates_then_kills_then_kills_again() {
    TestWorker::running(spec())
        .stop(StopReason::Cancelled)
        .does(term(RANK, StopReason::Cancelled, 130))
        .until(129)
        .does_nothing()
        .until(130)
        .does(kill(RANK, StopReason::Cancelled, 130))
        .until(140)
        .does(kill(RANK, StopReason::Cancelled, 140))
        .exited(0, Outcome::Signalled(Signal::KILL))
        .does([ended(RANK, Outcome::Signalled(Signal::KILL), Some(StopReason::Cancelled), 140)])
        .until(1_000)
        .does_nothing();
}

#[test]
fn a_rank_whose_executor_does_not_end_it_is_killed_with_its_executor() {
    let kills = |seconds: &[u64]| {
        seconds.iter().flat_map(|at| kill(RANK, StopReason::Killed, *at)).collect::<Vec<_>>()
    };
    let without_executor = |at: u64| {
        let stopping = stopping(StopReason::Killed, StopStep::Kill, at + 10);
        [WorkerEffect::Stopping(RANK, stopping), WorkerEffect::Kill(RANK)]
    };
    TestWorker::running(spec())
        .stop(StopReason::Killed)
        .until(129)
        .does(kills(&[100, 110, 120]))
        .until(140)
        .does([without_executor(130), without_executor(140)].concat())
        .exited(0, Outcome::Signalled(Signal::KILL))
        .does([ended(RANK, Outcome::Signalled(Signal::KILL), Some(StopReason::Killed), 140)]);
}

#[test]
fn a_warning_precedes_sigterm_by_its_span() {
    TestWorker::running(limited(10_000, Some(60)))
        .stop(StopReason::Preempted)
        .does(warn(RANK, StopReason::Preempted, 160))
        .until(159)
        .does_nothing()
        .until(160)
        .does(term(RANK, StopReason::Preempted, 190))
        .exited(0, Outcome::Exited(0))
        .does([ended(RANK, Outcome::Exited(0), Some(StopReason::Preempted), 160)]);
}

#[test]
fn at_the_time_limit_sigterm_falls_on_the_limit() {
    TestWorker::running(limited(300, Some(60)))
        .until(339)
        .does_nothing()
        .until(340)
        .does(warn(RANK, StopReason::TimeLimit, 400))
        .until(399)
        .does_nothing()
        .until(400)
        .does(term(RANK, StopReason::TimeLimit, 430))
        .exited(0, TERMINATED)
        .does([ended(RANK, TERMINATED, Some(StopReason::TimeLimit), 400)]);
}

#[test]
fn a_limit_shorter_than_its_warning_warns_at_once() {
    TestWorker::running(limited(10, Some(60)))
        .until(100)
        .does(warn(RANK, StopReason::TimeLimit, 110))
        .until(110)
        .does(term(RANK, StopReason::TimeLimit, 140));
}

#[test]
fn a_limit_without_a_warning_terminates() {
    TestWorker::running(limited(10, None)).until(109).does_nothing().until(110).does(term(
        RANK,
        StopReason::TimeLimit,
        140,
    ));
}

#[test]
fn a_second_reason_changes_nothing() {
    TestWorker::running(limited(300, Some(60)))
        .until(350)
        .does(warn(RANK, StopReason::TimeLimit, 400))
        .stop(StopReason::Cancelled)
        .does_nothing()
        .until(400)
        .does(term(RANK, StopReason::TimeLimit, 430))
        .stop(StopReason::Requeued)
        .does_nothing()
        .exited(0, TERMINATED)
        .does([ended(RANK, TERMINATED, Some(StopReason::TimeLimit), 400)]);
}

#[test]
fn a_warning_never_outlasts_the_time_limit() {
    TestWorker::running(limited(30, Some(20)))
        .until(105)
        .stop(StopReason::Cancelled)
        .does(warn(RANK, StopReason::Cancelled, 125))
        .until(125)
        .does(term(RANK, StopReason::Cancelled, 155));
    TestWorker::running(limited(100, Some(90)))
        .until(105)
        .stop(StopReason::Cancelled)
        .does(warn(RANK, StopReason::Cancelled, 195))
        .until(195)
        .does(term(RANK, StopReason::Cancelled, 225))
        .until(200)
        .does_nothing();
}

#[test]
fn a_stop_during_the_start_follows_the_start() {
    TestWorker::linked()
        .run(order(spec(), 1))
        .spawns(&[RANK])
        .stop(StopReason::Cancelled)
        .stop(StopReason::Requeued)
        .does_nothing()
        .until(103)
        .spawned(0)
        .does([vec![started(RANK, 103)], term(RANK, StopReason::Cancelled, 133)].concat())
        .exited(0, TERMINATED)
        .does([ended(RANK, TERMINATED, Some(StopReason::Cancelled), 103)]);
}

#[test]
fn a_stop_of_an_unknown_attempt_is_ignored() {
    TestWorker::linked().stop(StopReason::Superseded).does_nothing();
    TestWorker::running(spec())
        .exited(0, TERMINATED)
        .does([ended(RANK, TERMINATED, None, 100)])
        .stop(StopReason::Superseded)
        .until(1_000)
        .does_nothing();
}

#[test]
fn all_ranks_of_the_attempt_are_stopped() {
    TestWorker::both_running()
        .stop(StopReason::GangBroken)
        .does([RANK, ATTEMPT.rank(1)].map(|rank| term(rank, StopReason::GangBroken, 130)).concat());
}

#[test]
fn without_grace_sigkill_follows_at_once() {
    let mut spec = spec();
    spec.stop.grace = Span::ZERO;
    TestWorker::running(spec)
        .stop(StopReason::Cancelled)
        .does(term(RANK, StopReason::Cancelled, 100))
        .until(100)
        .does(kill(RANK, StopReason::Cancelled, 100));
}

#[test]
fn a_kill_comes_at_once_without_a_warning_and_without_sigterm() {
    TestWorker::running(limited(300, Some(60)))
        .stop(StopReason::Killed)
        .does(kill(RANK, StopReason::Killed, 100))
        .until(110)
        .does(kill(RANK, StopReason::Killed, 110))
        .exited(0, Outcome::Signalled(Signal::KILL))
        .does([ended(RANK, Outcome::Signalled(Signal::KILL), Some(StopReason::Killed), 110)]);
}

#[test]
fn a_kill_ends_the_warning_and_the_grace_of_a_stop_that_has_begun() {
    let cancelled = || TestWorker::running(limited(300, Some(60))).stop(StopReason::Cancelled);
    cancelled().does(warn(RANK, StopReason::Cancelled, 160)).until(120).stop(StopReason::Killed).does(kill(
        RANK,
        StopReason::Cancelled,
        120,
    ));
    cancelled()
        .does(warn(RANK, StopReason::Cancelled, 160))
        .until(160)
        .does(term(RANK, StopReason::Cancelled, 190))
        .until(165)
        .stop(StopReason::Killed)
        .does(kill(RANK, StopReason::Cancelled, 165));
}

#[test]
fn a_kill_during_the_start_follows_the_start_whatever_was_ordered_before() {
    TestWorker::linked()
        .run(order(spec(), 1))
        .spawns(&[RANK])
        .stop(StopReason::Cancelled)
        .stop(StopReason::Killed)
        .stop(StopReason::Cancelled)
        .does_nothing()
        .until(103)
        .spawned(0)
        .does([vec![started(RANK, 103)], kill(RANK, StopReason::Killed, 103)].concat());
}
