//! Which job held which device and when, for charts; therefore only for the first devices.

use std::collections::BTreeSet;

use cohabit_types::{DeviceId, JobRecord, Time};

use crate::machine_spec::MachineSpec;

/// The number of devices that are recorded.
const MAX_DEVICES: usize = 64;

/// A span of time for which a job held a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceSpan {
    /// The device: the name of its machine and its number there.
    pub device: String,
    /// The job, by its index in the order of submission.
    pub job: usize,
    /// When it began.
    pub from: Time,
    /// When it ended.
    pub to: Time,
}

/// The recorder of the first devices.
pub(super) struct DeviceSpanRecorder {
    devices: BTreeSet<DeviceId>,
    spans: Vec<DeviceSpan>,
}

impl DeviceSpanRecorder {
    pub(super) fn first_of(shapes: &[MachineSpec]) -> DeviceSpanRecorder {
        let devices = shapes.iter().flat_map(MachineSpec::devices).map(|device| device.id);
        DeviceSpanRecorder { devices: devices.take(MAX_DEVICES).collect(), spans: Vec::new() }
    }

    /// Records an ended job.
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

    /// The spans, ordered by device and time.
    pub(super) fn into_spans(mut self) -> Vec<DeviceSpan> {
        self.spans.sort_by(|a, b| (&a.device, a.from, a.job).cmp(&(&b.device, b.from, b.job)));
        self.spans
    }
}
