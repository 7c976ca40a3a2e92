//! What ranks do with their GPUs: measured with each sample, reported each minute and with the end of a rank.

use std::collections::BTreeSet;

use cohabit_types::{AttemptId, DeviceTelemetry, IDLE_WARNING, RankId, RankUsage, Report, Span, Time};

use crate::interface::WorkerEffect;
use crate::rank::{RankEntry, RankState};
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
            let meter = held.meters.entry(scan.device.clone());
            meter.or_insert_with(|| UsageMeter::new(started_at, capacity)).record(now, reading);
        }
    }

    /// Reports how far the running ranks are, if that is due, and which attempts have come to do nothing.
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
        let attempts: BTreeSet<AttemptId> = self.ranks.keys().map(|rank| rank.attempt).collect();
        for attempt in attempts {
            let idle = self.idle_since(attempt).filter(|since| now.since(*since) >= IDLE_WARNING);
            let Some(first) = self.ranks.get_mut(&attempt.rank(0)) else { continue };
            if first.idle_noticed != idle {
                first.idle_noticed = idle;
                self.report(self.idle_report(now, attempt), out);
            }
        }
    }

    /// The report that the GPUs of an attempt do nothing, if that is worth telling.
    pub(crate) fn idle_report(&self, now: Time, attempt: AttemptId) -> Option<Report> {
        let first = self.ranks.get(&attempt.rank(0)).filter(|held| held.is_live())?;
        let since = first.idle_noticed?;
        Some(Report::Idle { attempt, since, quiet_for: now.since(since) })
    }

    /// Since when all GPUs of the ranks of an attempt here have done nothing, if its first rank runs here and
    /// all of them do nothing.
    fn idle_since(&self, attempt: AttemptId) -> Option<Time> {
        let meters = |(_, held): (&RankId, &RankEntry)| {
            held.devices.iter().map(|device| held.meters.get(device)?.quiet_since()).collect::<Vec<_>>()
        };
        let quiet = self.ranks_of(attempt).filter(|(_, held)| held.is_live()).flat_map(meters);
        quiet.collect::<Option<Vec<Time>>>()?.into_iter().max()
    }
}
