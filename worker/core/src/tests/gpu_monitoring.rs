//! GPU monitoring: telemetry, foreign memory, the watchdog, lost GPUs and critical errors.

use std::sync::Arc;

use cohabit_types::{
    Bytes, Condition, DeviceTelemetry, GpuReading, Outcome, Report, StartFailure, StopReason,
};

use super::gpu_kit::*;
use super::kit::*;
use crate::{GpuSample, MpsEvent, WorkerEffect, WorkerEvent};

const OFF_THE_BUS: &str = "the driver reported Xid 79, the GPU has fallen off the bus";
const NO_ANSWER: &str = "the driver does not reach it: GPU is lost";
const MIB: u64 = 1 << 20;

/// The report that follows a sample of `gpu-0` at this second.
fn telemetry(sample: &GpuSample, secs: u64) -> WorkerEffect {
    let seen = DeviceTelemetry {
        device: sample.device.clone(),
        at: at(secs),
        reading: sample.reading.clone().unwrap(),
        ranks: sample.ranks.clone(),
    };
    WorkerEffect::Report(Report::Telemetry(vec![seen]))
}

/// A sample with this much foreign memory.
fn foreign(mib: u64) -> GpuSample {
    GpuSample { foreign_memory: Bytes(mib * MIB), ..look(&[]) }
}

fn lost() -> GpuSample {
    GpuSample { reading: Err("GPU is lost".into()), ..look(&[]) }
}

fn holds(bytes: u64) -> GpuSample {
    look(&[(rank_of(1), Bytes(bytes))])
}

/// A worker without MPS with the time-sliced job 1.
fn time_sliced() -> TestWorker {
    TestWorker::without_mps().run(sharer(1)).runs(1).forget_effects()
}

#[test]
fn one_scan_is_one_report_and_none_without_a_link() {
    let second = GpuSample { device: gpu(1), ..look(&[(rank_of(1), Bytes(5))]) };
    let reading = GpuReading { power: Some(300.0), ..GpuReading::default() };
    let first = GpuSample { reading: Ok(reading), ..look(&[]) };
    let mut batch = Vec::new();
    for sample in [&first, &second] {
        let WorkerEffect::Report(Report::Telemetry(seen)) = telemetry(sample, 107) else { unreachable!() };
        batch.extend(seen);
    }
    TestWorker::with_gpus()
        .until(107)
        .event(WorkerEvent::Sampled(vec![first.clone(), second]))
        .does([WorkerEffect::Report(Report::Telemetry(batch))])
        .unlink()
        .sees(first)
        .does_nothing();
}

#[test]
fn foreign_memory_is_reported_in_steps_and_fluctuations_are_not() {
    let condition = |mib: u64| report_condition(Condition { foreign_memory: Bytes(mib * MIB), ..well() });
    let seen = |test: TestWorker, mib: u64, then: Option<u64>| {
        let batch = telemetry(&foreign(mib), 100);
        test.sees(foreign(mib)).does([vec![batch], then.map(condition).into_iter().collect()].concat())
    };
    let mut test = TestWorker::with_gpus();
    for (mib, then) in [
        (0, None),
        (1, Some(256)),
        (256, None),
        (257, Some(512)),
        (255, None),
        (129, None),
        (128, Some(256)),
        (200, None),
        (1, None),
        (0, Some(0)),
        (1_000, Some(1_024)),
        (300, Some(512)),
    ] {
        test = seen(test, mib, then);
    }
}

#[test]
fn the_watchdog_stops_a_rank_that_is_over_its_limit_twice_in_a_row() {
    let over = ASKED.0 + 1;
    time_sliced()
        .sees(holds(over))
        .does([telemetry(&holds(over), 100)])
        .sees(holds(ASKED.0))
        .does([telemetry(&holds(ASKED.0), 100)])
        .sees(holds(over))
        .does([telemetry(&holds(over), 100)])
        .sees(holds(over))
        .does([terms(&[1], StopReason::GpuMemory, 110), vec![telemetry(&holds(over), 100)]].concat())
        .until(110)
        .does(kill(rank_of(1), StopReason::GpuMemory, 110))
        .dies(1)
        .does([terminated(1, StopReason::GpuMemory, 110)]);
}

#[test]
fn the_watchdog_stops_an_mps_client_that_holds_more_than_its_limit_and_a_context() {
    let (within, over) = (holds(ASKED.0 + 1024 * MIB), holds(2 * ASKED.0));
    TestWorker::serving(&[1])
        .sees(within.clone())
        .sees(within.clone())
        .does([telemetry(&within, 100), telemetry(&within, 100)])
        .sees(over.clone())
        .sees(over.clone())
        .does(
            [
                vec![telemetry(&over, 100)],
                terms(&[1], StopReason::GpuMemory, 110),
                vec![telemetry(&over, 100)],
            ]
            .concat(),
        );
}

#[test]
fn each_process_that_a_job_announced_has_its_part_of_the_limit_and_a_context() {
    let mut order = sharer(1);
    Arc::make_mut(&mut order.spec).demand.gpu_processes = 2;
    let test = TestWorker::with_gpus().run(order).word(MpsEvent::Up).runs(1).forget_effects();
    let within = holds(ASKED.0 + 2048 * MIB);
    test.sees(within.clone()).sees(within.clone()).does([telemetry(&within, 100), telemetry(&within, 100)]);
}

#[test]
fn many_processes_do_not_double_what_a_job_may_hold() {
    let mut order = sharer(1);
    Arc::make_mut(&mut order.spec).demand.gpu_processes = 64;
    let test = TestWorker::with_gpus().run(order).word(MpsEvent::Up).runs(1).forget_effects();
    let over = holds(ASKED.0 + ASKED.0 / 2 + MIB);
    test.sees(over.clone()).sees(over.clone()).does(
        [vec![telemetry(&over, 100)], terms(&[1], StopReason::GpuMemory, 110), vec![telemetry(&over, 100)]]
            .concat(),
    );
}

#[test]
fn a_gpu_that_does_not_answer_is_fenced_and_its_ranks_are_stopped() {
    let refused = Outcome::NotStarted(StartFailure::DeviceFenced(NO_ANSWER.into()));
    TestWorker::with_gpus()
        .run(loner(1))
        .runs(1)
        .run(sharer(2))
        .forget_effects()
        .sees(lost())
        .does(
            [
                terms(&[1], StopReason::DeviceLost, 110),
                vec![report_condition(fenced(NO_ANSWER)), ended(rank_of(2), refused, None, 100)],
            ]
            .concat(),
        )
        .sees(lost())
        .does_nothing()
        .dies(1)
        .does([terminated(1, StopReason::DeviceLost, 100)])
        .sees(look(&[]))
        .does([telemetry(&look(&[]), 100)]);
}

#[test]
fn the_ranks_of_a_gpu_off_the_bus_are_stopped() {
    TestWorker::serving(&[1, 2])
        .xid(79)
        .does(
            [terms(&[1, 2], StopReason::DeviceLost, 110), vec![report_condition(fenced(OFF_THE_BUS))]]
                .concat(),
        )
        .dies(1)
        .does([terminated(1, StopReason::DeviceLost, 100)]);
}

#[test]
fn memory_and_nvlink_errors_fence_the_gpu_but_do_not_stop_its_ranks() {
    for (code, meaning) in [
        (48, "uncorrectable memory error"),
        (64, "a bad memory row could not be remapped"),
        (74, "NVLink error"),
        (95, "uncontained memory error"),
    ] {
        let why = format!("the driver reported Xid {code}, {meaning}");
        TestWorker::serving(&[1])
            .xid(code)
            .does([report_condition(fenced(&why))])
            .xid(79)
            .does(terms(&[1], StopReason::DeviceLost, 110))
            .until(105)
            .dies(1)
            .does([terminated(1, StopReason::DeviceLost, 105)]);
    }
}

#[test]
fn errors_of_programs_do_not_fence_the_gpu() {
    let mut test = TestWorker::serving(&[1]);
    for code in [13, 31, 43, 45, 63, 94, 140] {
        test = test.xid(code).does_nothing();
    }
    test.run(sharer(2)).does([spawn(&sharer(2), CLIENT)]);
}

#[test]
fn pseudo_devices_have_no_samples_and_no_errors() {
    TestWorker::running(spec()).xid(79).sees(lost()).sees(look(&[])).does_nothing();
}
