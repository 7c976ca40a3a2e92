//! Which job held which device when: for charts, and so only of the first devices.

use std::collections::BTreeSet;

use cohabit_types::{DeviceId, JobRecord, Time};

use crate::machine_spec::MachineSpec;

/// Of so many devices at most.
const MAX_DEVICES: usize = 64;

/// A job held a device for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceSpan {
    /// The device: its machine's name and its number there.
    pub device: String,
    /// The job, by its position in the order of submission.
    pub job: usize,
    /// From this time on.
    pub from: Time,
    /// Up to this time.
    pub to: Time,
}

/// The devices that are looked at.
pub(super) struct DeviceSpanRecorder {
    devices: BTreeSet<DeviceId>,
    spans: Vec<DeviceSpan>,
}

impl DeviceSpanRecorder {
    pub(super) fn first_of(shapes: &[MachineSpec]) -> DeviceSpanRecorder {
        let devices = shapes.iter().flat_map(MachineSpec::devices).map(|device| device.id);
        DeviceSpanRecorder { devices: devices.take(MAX_DEVICES).collect(), spans: Vec::new() }
    }

    /// A job ended.
    pub(super) fn note(&mut self, job: usize, record: &JobRecord) {
        for attempt in &record.attempts {
            let held = attempt.ranks.iter().flat_map(|rank| &rank.devices);
            let held = held.filter(|device| self.devices.contains(device));
            self.spans.extend(held.map(|device| DeviceSpan {
                device: device.to_string(),
                job,
                from: attempt.started_at,
                to: attempt.ended_at.unwrap_or(attempt.started_at),
            }));
        }
    }

    /// By device and time.
    pub(super) fn into_spans(mut self) -> Vec<DeviceSpan> {
        self.spans.sort_by(|a, b| (&a.device, a.from, a.job).cmp(&(&b.device, b.from, b.job)));
        self.spans
    }
}
