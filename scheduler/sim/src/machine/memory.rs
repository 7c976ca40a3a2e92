//! Whether the memory of a device suffices for all processes on it, whatever was claimed.

use cohabit_types::{Bytes, Device, DeviceId, Outcome, RankId, Span, Time};

use super::{Machine, Outbox, RankSignalKind};
use crate::process::RankProcess;

/// How long a process runs until it has taken all its memory.
const FIRST_STEPS: Span = Span::from_secs(10);
/// A set that fits less often than this does not fit.
const FIT_THRESHOLD: f64 = 0.5;

impl Machine {
    /// A process takes its memory in its first steps: who comes last finds that there is none left.
    pub(super) fn take_memory(&self, now: Time, rank: RankId, out: &mut Outbox) {
        let exhausted = self.processes.get(&rank).and_then(|process| self.exhausted(process));
        if let Some(device) = exhausted {
            let said = format!("CUDA out of memory on {device}");
            out.pulse(
                now + FIRST_STEPS,
                rank,
                RankSignalKind::End(Outcome::OutOfGpuMemory { code: 1, said }),
            );
        }
    }

    /// A device of this process whose memory does not suffice; none where it does not tell how much it holds.
    fn exhausted(&self, process: &RankProcess) -> Option<DeviceId> {
        process.program.gpu_memory?;
        let devices = self.shape.devices().into_iter();
        let mut own = devices.filter(|device| process.start.devices.contains(&device.id));
        own.find(|device| !self.suffices(device)).map(|device| device.id)
    }

    /// By what the processes hold, and by what is true of such a set.
    fn suffices(&self, device: &Device) -> bool {
        let held: Bytes = self.at_work(&device.id).filter_map(|(_, it)| it.program.gpu_memory).sum();
        let holds_all = device.memory.is_none_or(|memory| held <= memory);
        holds_all && self.fate(&device.id).iter().all(|(_, fate)| fate.fits >= FIT_THRESHOLD)
    }
}
