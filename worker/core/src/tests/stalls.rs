//! Stalls, and the signals that the head is told of.

use cohabit_types::{JobSpec, Progress, Report, Signal, StallAction, StallPolicy, StopReason};

use super::kit::*;
use crate::{WorkerEffect, WorkerEvent};

fn watched(action: StallAction) -> JobSpec {
    JobSpec { stall: Some(StallPolicy { timeout: secs(60), action }), ..spec() }
}

fn step(step: u64) -> WorkerEvent {
    WorkerEvent::Progress(RANK, Progress { step, at: at(1), ..Progress::default() })
}

fn stalled(quiet_secs: u64, step: Option<u64>) -> WorkerEffect {
    WorkerEffect::Report(Report::Stalled { attempt: ATTEMPT, quiet_for: secs(quiet_secs), step })
}

#[test]
fn a_stall_is_reported_once_until_there_is_a_new_step() {
    let without_progress = |mut test: TestWorker| {
        test.effects.retain(|it| !matches!(it, WorkerEffect::Report(Report::Progress(_))));
        test
    };
    let test = TestWorker::running(watched(StallAction::Warn)).until(159).does_nothing();
    let test = test.until(160).does([stalled(60, None)]).until(300).does_nothing();
    let test = without_progress(test.event(step(7)).until(359)).does_nothing();
    let test = without_progress(test.event(step(7)).until(360)).does([stalled(60, Some(7))]);
    let test = without_progress(test.until(400)).does_nothing();
    without_progress(test.event(step(8)).until(460)).does([stalled(60, Some(8))]);
}

#[test]
fn a_stalled_job_that_is_to_be_requeued_is_stopped() {
    let stop = [vec![stalled(60, None)], term(RANK, StopReason::Stalled, 190)].concat();
    let test = TestWorker::running(watched(StallAction::Requeue)).until(160).does(stop);
    assert_eq!(test.reported_signals(), [Signal::TERM]);
    test.until(180).does_nothing();
}

#[test]
fn only_the_rank_that_reports_counts_and_rank_0_until_one_does() {
    let run = order(watched(StallAction::Warn), 2);
    let test = TestWorker::linked().run(run).spawned(0).spawned(1).forget_effects();
    let second = WorkerEvent::Progress(ATTEMPT.rank(1), Progress { step: 3, ..Progress::default() });
    let test = test.until(150).event(second).until(209).forget_effects();
    test.until(210).does([stalled(60, Some(3))]);
}

#[test]
fn a_stall_is_reported_again_over_a_new_link_and_ends_with_a_stop() {
    let test = TestWorker::running(watched(StallAction::Warn)).until(170).unlink().link();
    let reports = |test: &TestWorker| test.effects.iter().filter(|it| **it == stalled(70, None)).count();
    assert_eq!(reports(&test), 1);
    let test = test.stop(StopReason::Cancelled).forget_effects().unlink().link();
    assert!(!test.effects.iter().any(|it| matches!(it, WorkerEffect::Report(Report::Stalled { .. }))));
}

#[test]
fn the_head_is_told_of_each_signal_of_a_stop_once_per_attempt() {
    let test = TestWorker::both_running().stop(StopReason::Cancelled).until(131);
    assert_eq!(test.reported_signals(), [Signal::TERM, Signal::KILL]);
}
