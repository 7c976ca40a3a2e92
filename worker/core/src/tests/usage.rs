//! What ranks did with their GPUs: measured, reported, and told when they do nothing.

use cohabit_types::{
    Bytes, DeviceUsage, GpuReading, IDLE_STRETCH, IDLE_WARNING, Outcome, Report, Signal, Span,
};

use super::gpu_kit::*;
use super::kit::*;
use crate::{GpuSample, WorkerEffect};

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
