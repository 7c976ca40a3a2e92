//! One scan of all GPUs, with the memory of each rank.

use std::collections::BTreeMap;

use cohabit_gpu::{GpuError, GpuScan, NvmlSession};
use cohabit_types::{Bytes, DeviceId, RankId};
use cohabit_worker_core::GpuSample;

use super::enforcement::RankPid;
use super::process_owners::{ProcessOwner, ProcessOwners};

/// The result of a scan.
#[derive(Debug, Default)]
pub(crate) struct ScanRound {
    /// A sample of each GPU that answered or is lost.
    pub(crate) samples: Vec<GpuSample>,
    /// The processes of ranks on each GPU that answered.
    pub(crate) holders: Vec<(DeviceId, Vec<RankPid>)>,
    /// Problems, for the log.
    pub(crate) problems: Vec<String>,
    pub(crate) library: LibraryState,
}

/// Whether the driver's library can be used for the next scan.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LibraryState {
    #[default]
    Good,
    /// It has lost a GPU, or does not work any more, and must be reopened.
    Stale,
}

impl ScanRound {
    /// Scans these GPUs. Blocks on the driver.
    pub(crate) fn scan(gpus: &NvmlSession, devices: &[DeviceId], owners: &ProcessOwners) -> ScanRound {
        let mut round = ScanRound::default();
        for device in devices {
            round.add(device, gpus.scan(device), |pid| owners.owner_of(pid));
        }
        round
    }

    fn add(
        &mut self,
        device: &DeviceId,
        scan: Result<GpuScan, GpuError>,
        owner_of: impl Fn(i32) -> ProcessOwner,
    ) {
        match scan {
            Ok(scan) => {
                let (sample, holders) = attribute(device, scan, owner_of);
                self.samples.push(sample);
                self.holders.push((device.clone(), holders));
            }
            Err(GpuError::Lost(why)) => {
                self.library = LibraryState::Stale;
                let (device, reading) = (device.clone(), Err(why));
                let sample = GpuSample { device, reading, ranks: Vec::new(), foreign_memory: Bytes::ZERO };
                self.samples.push(sample);
            }
            Err(GpuError::Closed(why)) => {
                self.library = LibraryState::Stale;
                self.problems.push(why);
            }
            Err(GpuError::Other(why)) => self.problems.push(why),
        }
    }
}

/// Attributes memory to ranks, and lists the processes of ranks. Memory of unknown processes is not
/// attributed, because it may belong to ranks.
fn attribute(
    device: &DeviceId,
    scan: GpuScan,
    owner_of: impl Fn(i32) -> ProcessOwner,
) -> (GpuSample, Vec<RankPid>) {
    let mut ranks: BTreeMap<RankId, Bytes> = BTreeMap::new();
    let (mut holders, mut foreign_memory) = (Vec::new(), Bytes::ZERO);
    for process in scan.processes {
        let memory = process.memory.unwrap_or(Bytes::ZERO);
        match owner_of(process.pid) {
            ProcessOwner::Rank(rank) => {
                holders.push((rank, process.pid));
                let held = ranks.entry(rank).or_default();
                *held = Bytes(held.0 + memory.0);
            }
            ProcessOwner::Foreign => foreign_memory = Bytes(foreign_memory.0 + memory.0),
            ProcessOwner::Worker | ProcessOwner::Unknown => {}
        }
    }
    let ranks = ranks.into_iter().filter(|(_, memory)| *memory > Bytes::ZERO).collect();
    let sample = GpuSample { device: device.clone(), reading: Ok(scan.reading), ranks, foreign_memory };
    (sample, holders)
}

#[cfg(test)]
mod tests {
    use cohabit_gpu::GpuProcess;
    use cohabit_types::{GpuReading, JobId};

    use super::*;

    fn gpu() -> DeviceId {
        DeviceId("GPU-a".into())
    }

    fn scan(processes: &[(i32, Option<u64>)]) -> GpuScan {
        let process =
            |(pid, memory): &(i32, Option<u64>)| GpuProcess { pid: *pid, memory: memory.map(Bytes) };
        GpuScan { reading: GpuReading::default(), processes: processes.iter().map(process).collect() }
    }

    #[test]
    fn memory_belongs_to_a_rank_is_foreign_or_unknown() {
        let rank = |job| JobId::new(job).attempt(1).rank(0);
        let owner_of = |pid| match pid {
            1 | 2 => ProcessOwner::Rank(rank(1)),
            3 => ProcessOwner::Rank(rank(2)),
            4 => ProcessOwner::Worker,
            5 | 6 => ProcessOwner::Foreign,
            _ => ProcessOwner::Unknown,
        };
        let processes =
            [(1, Some(10)), (2, Some(20)), (3, None), (4, Some(40)), (5, Some(50)), (6, None), (7, Some(70))];
        let (sample, holders) = attribute(&gpu(), scan(&processes), owner_of);
        assert_eq!(sample.ranks, [(rank(1), Bytes(30))]);
        assert_eq!(sample.foreign_memory, Bytes(50));
        assert_eq!(holders, [(rank(1), 1), (rank(1), 2), (rank(2), 3)]);
    }

    #[test]
    fn a_library_that_fails_is_reopened_and_does_not_lose_gpus() {
        let mut round = ScanRound::default();
        round.add(&gpu(), Err(GpuError::Closed("it failed".into())), |_| ProcessOwner::Unknown);
        assert!(round.samples.is_empty() && round.library == LibraryState::Stale);
        assert_eq!(round.problems, ["it failed"]);
    }

    #[test]
    fn a_lost_gpu_is_reported_and_one_that_did_not_answer_is_left_out() {
        let mut round = ScanRound::default();
        round.add(&gpu(), Err(GpuError::Other("busy".into())), |_| ProcessOwner::Unknown);
        assert!(round.samples.is_empty() && round.library == LibraryState::Good);
        assert_eq!(round.problems, ["busy"]);
        round.add(&gpu(), Err(GpuError::Lost("fell off the bus".into())), |_| ProcessOwner::Unknown);
        assert_eq!(round.samples[0].reading, Err("fell off the bus".into()));
        assert!(round.holders.is_empty() && round.library == LibraryState::Stale);
    }
}
