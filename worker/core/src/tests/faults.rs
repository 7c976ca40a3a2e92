//! Faults of MPS servers: culprit and victims, and the recovery of the GPU.

use std::sync::Arc;

use cohabit_types::{Outcome, StartFailure, StopReason};

use super::gpu_kit::*;
use super::kit::*;
use crate::{MpsEvent, MpsOrder, RankExit, StopStep, WorkerEffect, WorkerEvent};

const NO_RECOVERY: &str = "its MPS server did not recover from a fault: no device";

#[test]
fn the_culprit_and_the_victims_are_stopped_and_the_server_recovers() {
    TestWorker::serving(&[1, 2])
        .word(faulted(Some(rank_of(2))))
        .does(
            [
                victims(&[1], 100),
                terms(&[2], StopReason::MpsFault, 110),
                vec![report_condition(recovering("a fatal GPU error"))],
            ]
            .concat(),
        )
        .dies(1)
        .does([terminated(1, StopReason::MpsFaultVictim, 100)])
        .dies(2)
        .does([terminated(2, StopReason::MpsFault, 100), mps(MpsOrder::Recover(None))])
        .word(MpsEvent::Up)
        .does([report_condition(well())])
        .run(sharer(3))
        .does([spawn(&sharer(3), CLIENT)]);
}

#[test]
fn without_a_culprit_all_are_victims_and_the_last_driver_error_is_reported() {
    let detail = "a fatal GPU error; the driver had reported Xid 31, a program accessed memory that is not \
                  its own";
    TestWorker::serving(&[1, 2])
        .xid(31)
        .does_nothing()
        .until(160)
        .word(faulted(None))
        .does([victims(&[1, 2], 160), vec![report_condition(recovering(detail))]].concat())
        .dies(1)
        .dies(2)
        .does([
            terminated(1, StopReason::MpsFaultVictim, 160),
            terminated(2, StopReason::MpsFaultVictim, 160),
            mps(MpsOrder::Recover(None)),
        ]);
}

#[test]
fn an_old_error_is_not_related_to_a_fault() {
    TestWorker::serving(&[1])
        .xid(31)
        .until(161)
        .word(faulted(None))
        .does([victims(&[1], 161), vec![report_condition(recovering("a fatal GPU error"))]].concat());
}

#[test]
fn a_victim_gets_no_warning_and_ten_seconds() {
    let mut warned = sharer(1);
    Arc::make_mut(&mut warned.spec).stop = limited(1_000, Some(90)).stop;
    TestWorker::with_gpus()
        .run(warned)
        .word(MpsEvent::Up)
        .runs(1)
        .forget_effects()
        .word(faulted(None))
        .does([victims(&[1], 100), vec![report_condition(recovering("a fatal GPU error"))]].concat())
        .until(109)
        .does_nothing()
        .until(110)
        .does(kill(rank_of(1), StopReason::MpsFaultVictim, 110));
}

#[test]
fn a_fault_shortens_a_stop_that_has_begun() {
    let hastened = WorkerEffect::Stopping(rank_of(1), stopping(StopReason::Cancelled, StopStep::Kill, 115));
    let mut warned = sharer(2);
    Arc::make_mut(&mut warned.spec).stop = limited(1_000, Some(90)).stop;
    TestWorker::with_gpus()
        .run(sharer(1))
        .run(warned)
        .word(MpsEvent::Up)
        .runs(1)
        .runs(2)
        .stop_job(1, StopReason::Cancelled)
        .stop_job(2, StopReason::Preempted)
        .until(105)
        .forget_effects()
        .word(faulted(None))
        .does(
            [
                vec![hastened],
                terms(&[2], StopReason::Preempted, 115),
                vec![report_condition(recovering("a fatal GPU error"))],
            ]
            .concat(),
        )
        .until(114)
        .does_nothing()
        .until(115)
        .does(
            [kill(rank_of(1), StopReason::Cancelled, 115), kill(rank_of(2), StopReason::Preempted, 115)]
                .concat(),
        )
        .dies(1)
        .does([terminated(1, StopReason::Cancelled, 115)])
        .dies(2)
        .does([terminated(2, StopReason::Preempted, 115), mps(MpsOrder::Recover(None))]);
}

#[test]
fn a_client_that_is_being_started_is_stopped_as_soon_as_it_runs() {
    TestWorker::serving(&[1])
        .run(sharer(2))
        .forget_effects()
        .word(faulted(Some(rank_of(1))))
        .dies(1)
        .forget_effects()
        .runs(2)
        .does([vec![started(rank_of(2), 100)], victims(&[2], 100)].concat())
        .dies(2)
        .does([terminated(2, StopReason::MpsFaultVictim, 100), mps(MpsOrder::Recover(None))]);
}

#[test]
fn a_rank_that_arrives_during_a_recovery_waits_for_it() {
    TestWorker::serving(&[1])
        .word(faulted(None))
        .run(sharer(2))
        .dies(1)
        .forget_effects()
        .word(MpsEvent::Up)
        .does([report_condition(well()), spawn(&sharer(2), CLIENT)]);
}

#[test]
fn a_server_that_does_not_recover_fences_its_gpu() {
    let refused = Outcome::NotStarted(StartFailure::DeviceFenced(NO_RECOVERY.into()));
    TestWorker::serving(&[1])
        .word(faulted(None))
        .dies(1)
        .run(sharer(2))
        .forget_effects()
        .word(MpsEvent::Failed("no device".into()))
        .does([report_condition(fenced(NO_RECOVERY)), ended(rank_of(2), refused.clone(), None, 100)])
        .run(loner(3))
        .does([ended(rank_of(3), refused, None, 100)])
        .until(10_000)
        .does_nothing();
}

#[test]
fn a_fault_without_clients_is_recovered_from_at_once() {
    TestWorker::serving(&[1])
        .dies(1)
        .forget_effects()
        .word(faulted(None))
        .does([report_condition(recovering("a fatal GPU error")), mps(MpsOrder::Recover(None))])
        .word(MpsEvent::Up)
        .does([report_condition(well())])
        .until(110)
        .does([mps(MpsOrder::Stop)]);
}

#[test]
fn a_daemon_on_a_fenced_gpu_is_stopped_instead_of_recovered() {
    TestWorker::serving(&[1])
        .xid(48)
        .word(faulted(None))
        .forget_effects()
        .dies(1)
        .does([terminated(1, StopReason::MpsFaultVictim, 100), mps(MpsOrder::Stop)])
        .word(MpsEvent::Stopped)
        .does_nothing();
}

#[test]
fn events_that_answer_no_order_are_ignored() {
    TestWorker::serving(&[1])
        .word(MpsEvent::Stopped)
        .word(MpsEvent::Up)
        .word(MpsEvent::Failed("late".into()))
        .does_nothing()
        .dies(1)
        .until(110)
        .forget_effects()
        .word(faulted(Some(rank_of(1))))
        .does_nothing()
        .word(MpsEvent::Stopped)
        .word(faulted(None))
        .does_nothing();
}

#[test]
fn a_fault_on_one_gpu_does_not_affect_the_other() {
    let mut elsewhere = sharer(2);
    elsewhere.ranks[0].devices = vec![gpu(1)];
    TestWorker::serving(&[1])
        .run(elsewhere.clone())
        .event(WorkerEvent::Mps(gpu(1), MpsEvent::Up))
        .runs(2)
        .forget_effects()
        .word(faulted(None))
        .does([victims(&[1], 100), vec![report_condition(recovering("a fatal GPU error"))]].concat())
        .event(WorkerEvent::Exited(
            rank_of(2),
            RankExit { outcome: Outcome::Exited(0), stopped: None, at: at(100) },
        ))
        .does([ended(rank_of(2), Outcome::Exited(0), None, 100)]);
}

#[test]
fn a_victim_that_exits_with_success_is_still_a_victim() {
    TestWorker::serving(&[1]).word(faulted(None)).forget_effects().ends(rank_of(1), Outcome::Exited(0)).does(
        [
            ended(rank_of(1), Outcome::Exited(0), Some(StopReason::MpsFaultVictim), 100),
            mps(MpsOrder::Recover(None)),
        ],
    );
}

/// It had ended before it could be told, as most victims do: a later daemon must not take that for a failure.
#[test]
fn the_reason_of_a_victim_is_stored_if_its_executor_does_not_know_it() {
    let exited = RankExit { outcome: Outcome::Exited(1), stopped: None, at: at(100) };
    TestWorker::serving(&[1])
        .word(faulted(None))
        .forget_effects()
        .event(WorkerEvent::Exited(rank_of(1), exited))
        .does([
            WorkerEffect::Explain(rank_of(1), StopReason::MpsFaultVictim),
            ended(rank_of(1), Outcome::Exited(1), Some(StopReason::MpsFaultVictim), 100),
            mps(MpsOrder::Recover(None)),
        ]);
}
