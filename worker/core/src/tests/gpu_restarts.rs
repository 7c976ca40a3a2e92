//! GPUs across restarts of the worker daemon and lost links: what is adopted, and what is reported again.

use cohabit_types::{DeviceSharing, Enforcement, Outcome, StartFailure, StopReason};

use super::gpu_kit::*;
use super::kit::*;
use crate::{GpuAccess, Lease, MpsEvent, MpsOrder, RankExit, StopStep, WorkerEffect, WorkerEvent};

const LATE_TURNS: &str = "ranks that were started without MPS still run on it";

fn restarted() -> TestWorker {
    TestWorker::with(vec![device(0, DeviceSharing::Enforced), device(1, DeviceSharing::Enforced)])
}

/// Two clients that an earlier daemon left.
fn with_clients() -> TestWorker {
    restarted().event(left_running(&sharer(1), CLIENT)).event(left_running(&sharer(2), CLIENT))
}

fn back(jobs: &[u64]) -> Vec<WorkerEffect> {
    let leases = jobs.iter().map(|job| lease(rank_of(*job), Lease::Held));
    leases.chain(jobs.iter().map(|job| started(rank_of(*job), 10))).collect()
}

#[test]
fn the_daemon_of_running_clients_is_adopted_once() {
    with_clients()
        .does([mps(MpsOrder::Adopt(None))])
        .link()
        .does(back(&[1, 2]))
        .run(sharer(3))
        .does_nothing()
        .word(MpsEvent::Up)
        .does([spawn(&sharer(3), CLIENT)]);
}

#[test]
fn clients_of_a_daemon_that_cannot_be_adopted_are_stopped() {
    with_clients()
        .link()
        .forget_effects()
        .word(MpsEvent::Failed("its server is gone".into()))
        .does([victims(&[1, 2], 100), vec![report_condition(recovering("its server is gone"))]].concat())
        .dies(1)
        .does([terminated(1, StopReason::MpsFaultVictim, 100)])
        .dies(2)
        .does([terminated(2, StopReason::MpsFaultVictim, 100), mps(MpsOrder::Recover(None))]);
}

#[test]
fn a_client_that_was_being_stopped_keeps_its_reason_and_its_time() {
    let stopped = |why| Some(stopping(why, StopStep::Kill, 104));
    restarted()
        .event(left_stopping(&sharer(1), CLIENT, stopped(StopReason::MpsFault)))
        .event(left_stopping(&sharer(2), CLIENT, stopped(StopReason::MpsFaultVictim)))
        .link()
        .forget_effects()
        .word(MpsEvent::Failed("its server is in fault".into()))
        .does([report_condition(recovering("its server is in fault"))])
        .until(104)
        .does(
            [kill(rank_of(1), StopReason::MpsFault, 104), kill(rank_of(2), StopReason::MpsFaultVictim, 104)]
                .concat(),
        )
        .dies(1)
        .does([terminated(1, StopReason::MpsFault, 104)])
        .dies(2)
        .does([terminated(2, StopReason::MpsFaultVictim, 104), mps(MpsOrder::Recover(None))]);
}

#[test]
fn without_running_clients_no_daemon_is_adopted() {
    let mut ended =
        found(sharer(1).spec, Some(RankExit { outcome: Outcome::Exited(0), stopped: None, at: at(20) }));
    ended.start.access = CLIENT;
    restarted().event(WorkerEvent::Found(Box::new(ended))).does_nothing();
}

#[test]
fn an_adopted_daemon_without_clients_is_stopped_after_its_idle_time() {
    restarted()
        .event(left_running(&sharer(1), CLIENT))
        .dies(1)
        .word(MpsEvent::Up)
        .does([mps(MpsOrder::Adopt(None))])
        .until(110)
        .does([mps(MpsOrder::Stop)]);
}

#[test]
fn a_sharing_rank_waits_for_a_surviving_exclusive_one() {
    restarted()
        .event(left_running(&loner(1), GpuAccess::Exclusive))
        .link()
        .does(back(&[1]))
        .run(sharer(2))
        .does_nothing();
}

#[test]
fn beside_a_time_sliced_rank_others_are_time_sliced_too() {
    let why = || Enforcement::Unenforced(LATE_TURNS.into());
    let mut test = restarted().event(left_running(&sharer(1), TURNS)).does_nothing();
    assert_eq!(test.worker.devices()[0].condition, unenforced(LATE_TURNS));
    test.link()
        .does([back(&[1]), vec![shares(rank_of(1), why())]].concat())
        .run(sharer(2))
        .does([spawn(&sharer(2), TURNS)])
        .dies(1)
        .does([died(1, 100)])
        .event(WorkerEvent::SpawnFailed(rank_of(2), StartFailure::Other("no".into())))
        .does([
            ended(rank_of(2), Outcome::NotStarted(StartFailure::Other("no".into())), None, 100),
            report_condition(well()),
        ])
        .run(sharer(3))
        .does([mps(MpsOrder::Start(None))]);
}

#[test]
fn a_new_link_gets_conditions_in_the_hello_and_everything_else_again() {
    let mut test = TestWorker::serving(&[1])
        .learns(1, Enforcement::Enforced)
        .unlink()
        .forget_effects()
        .xid(48)
        .does_nothing();
    let why = "the driver reported Xid 48, uncorrectable memory error";
    assert_eq!(test.worker.devices()[0].condition, fenced(why));
    test.link().does([
        lease(rank_of(1), Lease::Held),
        started(rank_of(1), 100),
        shares(rank_of(1), Enforcement::Enforced),
    ]);
}

#[test]
fn a_condition_that_changed_after_the_hello_is_reported() {
    let mut test = TestWorker::with_gpus().unlink();
    assert_eq!(test.worker.devices()[0].condition, well());
    let why = "the driver reported Xid 74, NVLink error";
    test.xid(74).does_nothing().link().does([report_condition(fenced(why))]);
}

#[test]
fn a_waiting_rank_is_given_up_with_the_link() {
    let never = StartFailure::Other("it was stopped before it could start".into());
    TestWorker::with_gpus()
        .run(sharer(1))
        .does([mps(MpsOrder::Start(None))])
        .unlink()
        .word(MpsEvent::Up)
        .does_nothing()
        .link()
        .does([ended(rank_of(1), Outcome::NotStarted(never), Some(StopReason::Orphaned), 100)]);
}
