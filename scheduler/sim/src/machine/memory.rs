//! Whether the memory of a device is enough for all processes on it, whatever they requested.

use cohabit_types::{Bytes, Device, DeviceId, Outcome, RankId, Span, Time};

use super::{Outbox, RankTimerKind, SimMachine};
use crate::process::RankProcess;

/// A process has allocated all its memory after this time.
const FIRST_STEPS: Span = Span::from_secs(10);
/// A set whose probability of fitting is below this does not fit.
const FIT_THRESHOLD: f64 = 0.5;

impl SimMachine {
    /// Ends a process with an out-of-memory error in its first steps if its device has no memory left: the
    /// last to start fails.
    pub(super) fn take_memory(&self, now: Time, rank: RankId, out: &mut Outbox) {
        let device = self.processes.get(&rank).and_then(|process| self.find_exhausted_device(process));
        if let Some(device) = device {
            let message = format!("CUDA out of memory on {device}");
            out.schedule(
                now + FIRST_STEPS,
                rank,
                RankTimerKind::End(Outcome::OutOfGpuMemory { code: 1, message }),
            );
        }
    }

    /// A device of this process that is out of memory. A process that does not state its memory never fails.
    fn find_exhausted_device(&self, process: &RankProcess) -> Option<DeviceId> {
        process.program.gpu_memory?;
        let devices = self.shape.devices().into_iter();
        let mut own = devices.filter(|device| process.start.devices.contains(&device.id));
        own.find(|device| !self.has_enough_memory(device)).map(|device| device.id)
    }

    /// Whether the memory of a device is enough, by what the processes hold and by the true model of such
    /// sets.
    fn has_enough_memory(&self, device: &Device) -> bool {
        let held: Bytes = self.running_on(&device.id).filter_map(|(_, it)| it.program.gpu_memory).sum();
        let holds_all = device.memory.is_none_or(|memory| held <= memory);
        holds_all
            && self.predict_colocation(&device.id).iter().all(|(_, estimate)| estimate.fits >= FIT_THRESHOLD)
    }
}
