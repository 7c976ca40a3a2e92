//! What ranks do with their GPUs: measured with each sample, reported each minute and with the end of a rank.

use cohabit_types::{DeviceTelemetry, IDLE_BELOW, RankUsage, Report, Span, Time};

use crate::interface::WorkerEffect;
use crate::rank::RankState;
use crate::state::Worker;
use crate::usage_meter::{RankReading, UsageMeter};

/// How often the head hears how far it is.
const REPORT_INTERVAL: Span = Span::from_secs(60);

impl Worker {
    /// Measures the ranks whose processes run on the device of this scan.
    pub(crate) fn measure(&mut self, now: Time, scan: &DeviceTelemetry) {
        let capacity = self.devices.iter().find(|it| it.id == scan.device).and_then(|it| it.memory);
        let Some(capacity) = capacity else { return };
        let holders = self.live_on(&scan.device).count();
        for (rank, held) in &mut self.ranks {
            let RankState::Running { started_at, .. } = held.state else { continue };
            if !held.devices.contains(&scan.device) {
                continue;
            }
            let own = scan.ranks.iter().find(|(of, _)| of == rank).map(|(_, memory)| *memory);
            let of_gpu = scan.reading.memory_used.filter(|_| holders == 1);
            let reading = RankReading { gpu: &scan.reading, memory: own.or(of_gpu), shared: holders > 1 };
            if let Some(activity) = &mut held.activity {
                own.into_iter().for_each(|memory| activity.read_memory(now, &scan.device, memory));
                // A GPU that it has for itself is busy with its work.
                if holders == 1 && scan.reading.utilization.is_none_or(|it| it >= IDLE_BELOW) {
                    activity.acted(now);
                }
            }
            let meter = held.meters.entry(scan.device.clone());
            meter.or_insert_with(|| UsageMeter::new(started_at, capacity)).record(now, reading);
        }
    }

    /// Reports how far the running ranks are, if that is due, and which attempts do nothing.
    pub(crate) fn report_usage(&mut self, now: Time, out: &mut Vec<WorkerEffect>) {
        let is_due = self.usage_reported_at.is_none_or(|last| now.since(last) >= REPORT_INTERVAL);
        if is_due && self.is_linked() {
            let running = self.ranks.iter().filter(|(_, held)| held.is_live());
            let usage = running.map(|(rank, held)| RankUsage { rank: *rank, devices: held.usage(now) });
            let usage: Vec<RankUsage> = usage.filter(|it| !it.devices.is_empty()).collect();
            if !usage.is_empty() {
                self.usage_reported_at = Some(now);
                self.report(Some(Report::Usage(usage)), out);
            }
        }
        self.report_idleness(now, out);
    }
}
