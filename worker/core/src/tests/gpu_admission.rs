//! Access to GPUs: under MPS, time-sliced or exclusive; and when MPS daemons run.

use std::sync::Arc;

use cohabit_types::{
    Bytes, ComputeLimit, DeviceSharing, Enforcement, HeldRank, HeldRankPhase, Outcome, RunOrder, Share,
    StartFailure, StopReason,
};

use super::gpu_kit::*;
use super::kit::*;
use crate::{GpuAccess, MpsEvent, MpsLimits, MpsOrder, WorkerEffect};

fn not_started(failure: StartFailure) -> Outcome {
    Outcome::NotStarted(failure)
}

#[test]
fn the_first_sharing_rank_waits_for_the_daemon_and_later_ones_do_not() {
    let test = TestWorker::with_gpus()
        .run(sharer(1))
        .does([mps(MpsOrder::Start(None))])
        .run(sharer(2))
        .does_nothing();
    let held = |job| HeldRank { rank: rank_of(job), phase: HeldRankPhase::Starting };
    assert_eq!(test.worker.held(), [held(1), held(2)]);
    test.word(MpsEvent::Up)
        .does([spawn(&sharer(1), CLIENT), spawn(&sharer(2), CLIENT)])
        .run(sharer(3))
        .does([spawn(&sharer(3), CLIENT)]);
}

#[test]
fn a_daemon_without_clients_is_stopped_after_ten_seconds_and_started_again() {
    TestWorker::serving(&[1, 2])
        .until(200)
        .dies(1)
        .does([died(1, 200)])
        .until(300)
        .does_nothing()
        .dies(2)
        .does([died(2, 300)])
        .until(309)
        .does_nothing()
        .until(310)
        .does([mps(MpsOrder::Stop)])
        .run(sharer(3))
        .until(400)
        .does_nothing()
        .word(MpsEvent::Stopped)
        .does([mps(MpsOrder::Start(None))]);
}

#[test]
fn an_idle_daemon_serves_a_rank_that_arrives_in_time() {
    TestWorker::serving(&[1])
        .dies(1)
        .until(109)
        .forget_effects()
        .run(sharer(2))
        .does([spawn(&sharer(2), CLIENT)])
        .until(400)
        .does_nothing();
}

#[test]
fn an_exclusive_rank_starts_at_once_without_a_daemon() {
    TestWorker::with_gpus().run(loner(1)).does([spawn(&loner(1), GpuAccess::Exclusive)]);
}

#[test]
fn an_exclusive_rank_waits_until_the_daemon_has_stopped() {
    TestWorker::serving(&[1])
        .run(loner(2))
        .does_nothing()
        .dies(1)
        .does([died(1, 100), mps(MpsOrder::Stop)])
        .word(MpsEvent::Stopped)
        .does([spawn(&loner(2), GpuAccess::Exclusive)]);
}

#[test]
fn a_rank_on_two_gpus_waits_for_the_daemons_of_both() {
    let mut both = loner(2);
    both.ranks[0].devices = vec![gpu(0), gpu(1)];
    TestWorker::serving(&[1])
        .dies(1)
        .forget_effects()
        .run(both.clone())
        .does([mps(MpsOrder::Stop)])
        .word(MpsEvent::Stopped)
        .does([spawn(&both, GpuAccess::Exclusive)]);
}

#[test]
fn a_sharing_rank_waits_for_an_exclusive_one() {
    TestWorker::with_gpus()
        .run(loner(1))
        .runs(1)
        .forget_effects()
        .run(sharer(2))
        .does_nothing()
        .dies(1)
        .does([died(1, 100), mps(MpsOrder::Start(None))]);
}

#[test]
fn limits_are_per_process_and_a_capped_percentage_is_the_share() {
    let gets = |share: u32, memory: u64, processes: u32, percentage: u32| {
        let mut order = sharer(1);
        Arc::make_mut(&mut order.spec).demand.compute = ComputeLimit::Capped;
        Arc::make_mut(&mut order.spec).demand.gpu_memory = Some(Bytes(memory));
        Arc::make_mut(&mut order.spec).demand.gpu_processes = processes;
        order.ranks[0].share = Share(share);
        let limits = MpsLimits { memory: Bytes(1 << 20), percentage: Some(percentage) };
        let test = TestWorker::with_gpus().run(order.clone()).forget_effects();
        test.word(MpsEvent::Up).does([spawn(&order, GpuAccess::Mps(limits))]);
    };
    gets(333, (3 << 20) + 5, 2, 33);
    gets(5, 17, 4, 1);
}

#[test]
fn without_mps_ranks_are_time_sliced_and_reported_as_unenforced() {
    let why = || Enforcement::Unenforced("no MPS here".into());
    TestWorker::without_mps()
        .run(sharer(1))
        .does([spawn(&sharer(1), TURNS)])
        .runs(1)
        .does([started(rank_of(1), 100), shares(rank_of(1), why())]);
}

#[test]
fn a_time_sliced_rank_without_a_memory_request_is_limited_to_its_share() {
    let mut order = sharer(1);
    Arc::make_mut(&mut order.spec).demand.gpu_memory = None;
    let quarter = GpuAccess::TimeSliced(Bytes(20 * GIB));
    TestWorker::without_mps().run(order.clone()).does([spawn(&order, quarter)]);
}

#[test]
fn a_rank_that_requires_enforcement_is_refused_without_it() {
    let refused = |why: &str| not_started(StartFailure::Unenforced(why.into()));
    TestWorker::without_mps().run(strict_sharer(1)).does([ended(
        rank_of(1),
        refused("no MPS here"),
        None,
        100,
    )]);
    let alone = device(0, DeviceSharing::Alone("it is divided".into()));
    TestWorker::with(vec![alone]).link().run(sharer(1)).does([ended(
        rank_of(1),
        refused("it is divided"),
        None,
        100,
    )]);
}

#[test]
fn without_a_daemon_only_ranks_that_accept_time_slicing_start() {
    let why = did_not_start("exit status 100");
    TestWorker::with_gpus()
        .run(sharer(1))
        .run(strict_sharer(2))
        .does([mps(MpsOrder::Start(None))])
        .word(MpsEvent::Failed("exit status 100".into()))
        .does([
            report_condition(unenforced(&why)),
            spawn(&sharer(1), TURNS),
            ended(rank_of(2), not_started(StartFailure::Unenforced(why.clone())), None, 100),
        ])
        .run(sharer(3))
        .does([spawn(&sharer(3), TURNS)]);
}

/// The reason of a GPU whose MPS daemon did not start.
fn did_not_start(why: &str) -> String {
    format!("{why}; it is tried again in pauses of up to 10 minutes, while no job runs on the GPU")
}

#[test]
fn a_daemon_that_did_not_start_is_tried_again_in_growing_pauses() {
    let failed = || MpsEvent::Failed("no device".into());
    TestWorker::with_gpus()
        .run(strict_sharer(1))
        .forget_effects()
        .word(failed())
        .forget_effects()
        .until(109)
        .does_nothing()
        .until(110)
        .does([mps(MpsOrder::Start(None))])
        .word(failed())
        .until(129)
        .does_nothing()
        .until(130)
        .does([mps(MpsOrder::Start(None))])
        .run(sharer(2))
        .does_nothing()
        .word(MpsEvent::Up)
        .does([report_condition(well()), spawn(&sharer(2), CLIENT)]);
}

#[test]
fn a_daemon_is_not_tried_again_while_a_rank_takes_turns_on_the_gpu() {
    TestWorker::with_gpus()
        .run(sharer(1))
        .word(MpsEvent::Failed("no device".into()))
        .runs(1)
        .forget_effects()
        .until(300)
        .does_nothing()
        .dies(1)
        .forget_effects()
        .until(310)
        .does([mps(MpsOrder::Start(None))])
        .word(MpsEvent::Up)
        .does([report_condition(well())]);
}

/// A linked worker with a GPU that one user at a time may share.
fn of_one_user() -> TestWorker {
    TestWorker::with(vec![device(0, DeviceSharing::OneUser("the driver is old".into()))]).link()
}

fn sharer_of(job: u64, account: &str) -> RunOrder {
    RunOrder { account: account.to_owned(), ..sharer(job) }
}

fn start_for(account: &str) -> [WorkerEffect; 1] {
    [mps(MpsOrder::Start(Some(account.into())))]
}

#[test]
fn a_daemon_of_an_old_driver_serves_one_account_at_a_time() {
    let (adas, beas, second) = (sharer_of(1, "ada"), sharer_of(2, "bea"), sharer_of(3, "ada"));
    of_one_user()
        .run(adas.clone())
        .does(start_for("ada"))
        .word(MpsEvent::Up)
        .does([spawn(&adas, CLIENT)])
        .run(beas.clone())
        .does_nothing()
        .run(second.clone())
        .does([spawn(&second, CLIENT)])
        .dies(1)
        .forget_effects()
        .dies(3)
        .does([died(3, 100), mps(MpsOrder::Stop)])
        .word(MpsEvent::Stopped)
        .does(start_for("bea"))
        .word(MpsEvent::Up)
        .does([spawn(&beas, CLIENT)]);
}

#[test]
fn an_idle_daemon_of_an_old_driver_serves_the_next_rank_of_its_account() {
    let next = sharer_of(2, "ada");
    of_one_user()
        .run(sharer_of(1, "ada"))
        .word(MpsEvent::Up)
        .dies(1)
        .forget_effects()
        .until(105)
        .run(next.clone())
        .does([spawn(&next, CLIENT)]);
}

#[test]
fn a_stop_ends_a_waiting_rank_without_starting_it() {
    let never = StartFailure::Other("it was stopped before it could start".into());
    TestWorker::with_gpus()
        .run(sharer(1))
        .does([mps(MpsOrder::Start(None))])
        .stop_job(1, StopReason::Cancelled)
        .does([ended(rank_of(1), not_started(never), Some(StopReason::Cancelled), 100)])
        .word(MpsEvent::Up)
        .does_nothing()
        .until(110)
        .does([mps(MpsOrder::Stop)]);
}

#[test]
fn enforcement_is_reported_when_it_is_known_and_when_it_changes() {
    let why = || Enforcement::Unenforced("its processes are no clients".into());
    TestWorker::serving(&[1])
        .learns(1, Enforcement::Enforced)
        .does([shares(rank_of(1), Enforcement::Enforced)])
        .learns(1, Enforcement::Enforced)
        .does_nothing()
        .learns(1, why())
        .does([shares(rank_of(1), why())]);
}

#[test]
fn a_rank_that_requires_enforcement_is_stopped_when_it_fails() {
    let why = || Enforcement::Unenforced("its processes are no clients".into());
    TestWorker::with_gpus()
        .run(strict_sharer(1))
        .word(MpsEvent::Up)
        .runs(1)
        .forget_effects()
        .learns(1, why())
        .does([vec![shares(rank_of(1), why())], terms(&[1], StopReason::Unenforced, 130)].concat())
        .dies(1)
        .does([terminated(1, StopReason::Unenforced, 100)]);
}
