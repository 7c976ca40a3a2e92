//! How busy each device was in each minute of the last hour, as far as this program has looked.

use std::collections::HashMap;

use cohabit_client::types::{DeviceId, NodeRecord, Span, Time};

/// Minutes that are kept.
pub(crate) const MINUTES: usize = 60;

/// The means of the minutes of one device; the latest last.
#[derive(Debug, Clone)]
struct DeviceMinutes {
    /// The minute of the last mean, since the epoch.
    minute: u64,
    means: [Mean; MINUTES],
}

/// A running mean of fractions.
#[derive(Debug, Default, Clone, Copy)]
struct Mean {
    sum: f64,
    count: u32,
}

/// The devices by node and id.
#[derive(Debug, Default)]
pub(crate) struct UtilizationHistory(HashMap<String, HashMap<DeviceId, DeviceMinutes>>);

impl UtilizationHistory {
    /// Adds what the nodes report now, and forgets nodes that are gone.
    pub(crate) fn add(&mut self, nodes: &[NodeRecord], now: Time) {
        self.0.retain(|name, _| nodes.iter().any(|node| node.name == *name));
        let minute = minute_of(now);
        for node in nodes {
            let devices = self.0.entry(node.name.clone()).or_default();
            devices.retain(|id, _| node.devices.iter().any(|it| it.device.id == *id));
            for record in &node.devices {
                let reading = record.telemetry.as_ref().and_then(|it| it.reading.utilization);
                let Some(busy) = reading else { continue };
                let minutes = devices
                    .entry(record.device.id.clone())
                    .or_insert_with(|| DeviceMinutes { minute, means: [Mean::default(); MINUTES] });
                minutes.add(minute, busy);
            }
        }
    }

    /// The means of the last minutes, the latest last; none where nothing was seen.
    pub(crate) fn of(&self, node: &str, device: &DeviceId, now: Time) -> Option<[Option<f64>; MINUTES]> {
        let mut minutes = self.0.get(node)?.get(device)?.clone();
        minutes.advance(minute_of(now));
        Some(minutes.means.map(|mean| (mean.count > 0).then(|| mean.sum / f64::from(mean.count))))
    }
}

impl DeviceMinutes {
    fn add(&mut self, minute: u64, busy: f64) {
        self.advance(minute);
        let [.., latest] = &mut self.means;
        *latest = Mean { sum: latest.sum + busy, count: latest.count + 1 };
    }

    /// Moves on to this minute. A clock that went back adds to the latest one.
    fn advance(&mut self, minute: u64) {
        let passed = usize::try_from(minute.saturating_sub(self.minute)).unwrap_or(MINUTES).min(MINUTES);
        self.means.rotate_left(passed);
        self.means[MINUTES - passed..].fill(Mean::default());
        self.minute = self.minute.max(minute);
    }
}

fn minute_of(time: Time) -> u64 {
    time.as_micros() / Span::from_secs(60).as_micros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minutes_hold_means_and_gaps() {
        let mut minutes = DeviceMinutes { minute: 10, means: [Mean::default(); MINUTES] };
        for (minute, busy) in [(10, 0.2), (10, 0.4), (12, 1.0), (11, 0.0)] {
            minutes.add(minute, busy);
        }
        let means: Vec<Option<f64>> = minutes.means[MINUTES - 3..]
            .iter()
            .map(|mean| (mean.count > 0).then(|| mean.sum / f64::from(mean.count)))
            .collect();
        assert_eq!(means.len(), 3);
        assert!((means[0].unwrap() - 0.3).abs() < 1e-9 && means[1].is_none());
        assert!((means[2].unwrap() - 0.5).abs() < 1e-9, "a clock that went back adds to the latest minute");
        minutes.add(1_000, 1.0);
        assert!(minutes.means[..MINUTES - 1].iter().all(|mean| mean.count == 0));
    }
}
