//! GPU monitoring: samples of GPUs, and critical errors that the driver reports.

use cohabit_types::{Bytes, DeviceId, DeviceTelemetry, RankId, Report, StopReason, Time};

use crate::interface::{GpuSample, WorkerEffect};
use crate::memory_watchdog::MemoryReading;
use crate::rank::RankState;
use crate::state::Worker;
use crate::xid::{self, Severity};

impl Worker {
    pub(crate) fn handle_samples(&mut self, now: Time, samples: Vec<GpuSample>, out: &mut Vec<WorkerEffect>) {
        let mut telemetry = Vec::new();
        for GpuSample { device, reading, ranks, foreign_memory } in samples {
            let Some(gpu) = self.gpus.get_mut(&device) else { continue };
            match reading {
                Err(why) => self.lose(now, &device, format!("the driver does not reach it: {why}"), out),
                Ok(reading) => {
                    gpu.note_foreign_memory(foreign_memory);
                    let scan = DeviceTelemetry { device, at: now, reading, ranks };
                    self.colocation.record_scan(&scan);
                    self.measure(now, &scan);
                    self.watch(now, &scan.ranks, out);
                    telemetry.push(scan);
                }
            }
        }
        self.report((!telemetry.is_empty()).then_some(Report::Telemetry(telemetry)), out);
        self.report_usage(now, out);
    }

    pub(crate) fn xid(&mut self, now: Time, device: &DeviceId, code: u64, out: &mut Vec<WorkerEffect>) {
        let Some(gpu) = self.gpus.get_mut(device) else { return };
        gpu.note_xid(now, code);
        let why = format!("the driver reported {}", xid::describe(code));
        match xid::classify(code).0 {
            Severity::Noted => {}
            Severity::Fences => gpu.fence(why),
            Severity::Loses => self.lose(now, device, why, out),
        }
    }

    /// Stops ranks that hold more memory than allowed, where nothing else limits it.
    fn watch(&mut self, now: Time, ranks: &[(RankId, Bytes)], out: &mut Vec<WorkerEffect>) {
        for (rank, memory) in ranks {
            let watchdog = self.ranks.get_mut(rank).and_then(|held| held.watchdog.as_mut());
            if watchdog.map(|it| it.record(*memory)) == Some(MemoryReading::Over) {
                self.stop_rank(now, *rank, StopReason::GpuMemory, out);
            }
        }
    }

    /// Takes the GPU out of service and stops what runs on it. Ranks that wait for it will be refused.
    fn lose(&mut self, now: Time, device: &DeviceId, why: String, out: &mut Vec<WorkerEffect>) {
        if let Some(gpu) = self.gpus.get_mut(device) {
            gpu.fence(why);
        }
        let started = self.live_on(device).filter(|(_, held)| !matches!(held.state, RankState::Waiting(_)));
        for rank in started.map(|(rank, _)| rank).collect::<Vec<_>>() {
            self.stop_rank(now, rank, StopReason::DeviceLost, out);
        }
    }
}
