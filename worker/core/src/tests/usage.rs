//! What ranks did with their GPUs: measured, reported, and told when they do nothing.

use cohabit_types::{
    Bytes, DeviceUsage, GpuReading, IDLE_STRETCH, IDLE_WARNING, Outcome, Report, RunOrder, Signal, Span,
};

use super::gpu_kit::*;
use super::kit::*;
use crate::{GpuSample, MpsEvent, WorkerEffect, WorkerEvent};

/// A worker whose job 1 has had `gpu-0` for itself since second 100.
fn exclusive() -> TestWorker {
    TestWorker::with_gpus().run(loner(1)).runs(1).forget_effects()
}

impl TestWorker {
    /// Samples every two seconds between these seconds, with this utilization.
    fn busy(mut self, from: u64, to: u64, utilization: f64) -> TestWorker {
        for secs in (from..=to).step_by(2) {
            let reading = GpuReading {
                utilization: Some(utilization),
                memory_used: Some(Bytes(3 << 30)),
                ..GpuReading::default()
            };
            self = self.until(secs).sees(GpuSample { reading: Ok(reading), ..look(&[]) });
        }
        self
    }
}

/// After how long it is told that an interactive job does nothing.
const TOLD: Span = Span::from_secs(1_200);

fn interactive(order: RunOrder) -> RunOrder {
    RunOrder { idle_after: Some(TOLD), ..order }
}

impl TestWorker {
    /// The processor time of the rank of job 1 is read every two seconds between these seconds, while it
    /// takes so much of a core.
    fn computes(mut self, from: u64, to: u64, of_a_core: f64) -> TestWorker {
        for secs in (from..=to).step_by(2) {
            self.processor_time = self.processor_time + Span::from_secs_f64(of_a_core * 2.0);
            let used = self.processor_time;
            self = self.until(secs).event(WorkerEvent::ProcessorTime(vec![(rank_of(1), used)]));
        }
        self
    }
}

fn idleness(test: &mut TestWorker) -> Vec<Report> {
    let is_one = |report: &Report| matches!(report, Report::Idle { .. } | Report::Active(_));
    reports(test).into_iter().filter(is_one).collect()
}

fn reports(test: &mut TestWorker) -> Vec<Report> {
    let report = |effect| if let WorkerEffect::Report(report) = effect { Some(report) } else { None };
    let is_telemetry = |report: &Report| matches!(report, Report::Telemetry(_));
    test.take_effects().into_iter().filter_map(report).filter(|it| !is_telemetry(it)).collect()
}

fn usage_of(report: &Report) -> &[DeviceUsage] {
    if let Report::Ended { usage, .. } = report {
        return usage;
    }
    let Report::Usage(all) = report else { panic!("not of usage: {report:?}") };
    &all[0].devices
}

#[test]
fn usage_is_reported_each_minute_and_with_the_end() {
    let mut test = exclusive().busy(100, 220, 0.5);
    let minutes = reports(&mut test);
    let held: Vec<u64> = minutes.iter().map(|it| usage_of(it)[0].held.as_micros() / 1_000_000).collect();
    assert_eq!(held, [2, 62], "of a process that has run since second 100");
    let mut test = test.until(221).dies(1);
    let last = reports(&mut test);
    let Report::Ended { outcome, usage, .. } = &last[0] else { panic!("{last:?}") };
    assert_eq!(*outcome, Outcome::Signalled(Signal::TERM));
    assert_eq!((usage[0].held, usage[0].measured, usage[0].busy), three(121, 120, 60));
    assert_eq!((usage[0].memory, usage[0].shared), (Some(Bytes(3 << 30)), false));
}

fn three(held: u64, measured: u64, busy: u64) -> (Span, Span, Span) {
    (Span::from_secs(held), Span::from_secs(measured), Span::from_secs(busy))
}

#[test]
fn ranks_that_share_a_gpu_know_their_own_memory_only() {
    let mut test = TestWorker::serving(&[1, 2]).forget_effects();
    for secs in [152, 154] {
        let reading =
            GpuReading { utilization: Some(1.0), memory_used: Some(Bytes(9 << 30)), ..GpuReading::default() };
        let seen = look(&[(rank_of(1), Bytes(5))]);
        test = test.until(secs).sees(GpuSample { reading: Ok(reading), ..seen });
    }
    let seen = reports(&mut test);
    let Some(Report::Usage(all)) = seen.first() else { panic!("{seen:?}") };
    let memory: Vec<_> = all.iter().map(|it| (it.devices[0].memory, it.devices[0].shared)).collect();
    assert_eq!(memory, [(Some(Bytes(5)), true), (None, true)]);
}

#[test]
fn an_idle_gpu_is_told_once_for_each_stretch_and_over_each_link() {
    let warning = 100 + IDLE_WARNING.as_micros() / 1_000_000;
    let is_idle = |report: &Report| matches!(report, Report::Idle { .. });
    let mut test = exclusive().busy(100, warning + 60, 0.0);
    let told: Vec<_> = reports(&mut test).into_iter().filter(is_idle).collect();
    let attempt = rank_of(1).attempt;
    assert_eq!(told, [Report::Idle { attempt, since: at(100), quiet_for: IDLE_WARNING }]);
    let mut test = test.unlink().link();
    let again: Vec<_> = reports(&mut test).into_iter().filter(is_idle).collect();
    assert!(matches!(again[..], [Report::Idle { since, .. }] if since == at(100)), "{again:?}");
    let mut test = test.busy(warning + 62, warning + 80, 1.0);
    assert!(!reports(&mut test).iter().any(is_idle));
    let mut test = test.unlink().link();
    assert!(!reports(&mut test).iter().any(is_idle), "it works again");
    let idle = usage_of(reports(&mut test.until(warning + 90).dies(1)).first().unwrap())[0].idle;
    assert!(idle >= IDLE_STRETCH, "{idle}");
}

#[test]
fn an_interactive_job_is_told_earlier_and_also_when_it_works_again() {
    let test = TestWorker::with_gpus().run(interactive(loner(1))).runs(1).forget_effects();
    let attempt = rank_of(1).attempt;
    assert_eq!(test.worker.watched_for_activity().collect::<Vec<_>>(), [rank_of(1)]);
    // What it does besides does not matter: the GPU is its own.
    let mut test = test.computes(100, 110, 1.0).busy(112, 1_400, 0.0);
    assert_eq!(idleness(&mut test), [Report::Idle { attempt, since: at(112), quiet_for: TOLD }]);
    let mut test = test.busy(1_402, 1_404, 0.5);
    assert_eq!(idleness(&mut test), [Report::Active(attempt)]);
    // The head of another link may have heard the contrary.
    let mut test = test.unlink().link();
    assert_eq!(idleness(&mut test), [Report::Active(attempt)]);
}

#[test]
fn one_that_shares_its_gpu_is_idle_while_others_work_and_it_takes_no_processor_time() {
    let mut test = TestWorker::with_gpus().run(interactive(sharer(1))).run(sharer(2)).word(MpsEvent::Up);
    test = test.runs(1).runs(2).forget_effects();
    let begin = 100;
    let shared = |secs: u64, memory: u64| {
        let reading = GpuReading { utilization: Some(1.0), ..GpuReading::default() };
        (
            secs,
            GpuSample {
                reading: Ok(reading),
                ..look(&[(rank_of(1), Bytes(memory)), (rank_of(2), Bytes(9))])
            },
        )
    };
    for secs in (begin..begin + 1_300).step_by(2) {
        let (at, sample) = shared(secs, 5);
        test = test.until(at).sees(sample).computes(secs, secs, 0.01);
    }
    let told = idleness(&mut test);
    assert!(matches!(told[..], [Report::Idle { attempt, .. }] if attempt == rank_of(1).attempt), "{told:?}");
    // Memory that it takes or gives back is a sign of work.
    let (at, sample) = shared(begin + 1_302, 6);
    let mut test = test.until(at).sees(sample);
    assert_eq!(idleness(&mut test), [Report::Active(rank_of(1).attempt)]);
}

#[test]
fn one_without_a_gpu_is_idle_while_it_takes_no_processor_time_and_reports_no_step() {
    let mut order = interactive(loner(1));
    order.ranks[0].devices.clear();
    let mut test = TestWorker::with_gpus().run(order).runs(1).forget_effects().computes(100, 1_200, 0.01);
    assert_eq!(idleness(&mut test), []);
    let mut test = test.event(WorkerEvent::Progress(rank_of(1), step(1))).computes(1_202, 2_300, 0.01);
    assert_eq!(idleness(&mut test), [], "its step was a sign of work");
    let mut test = test.computes(2_302, 2_500, 0.01);
    assert!(matches!(idleness(&mut test)[..], [Report::Idle { .. }]));
    let mut test = test.computes(2_502, 2_700, 0.5);
    assert_eq!(idleness(&mut test), [Report::Active(rank_of(1).attempt)]);
}
