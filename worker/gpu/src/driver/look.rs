//! One look at a GPU: readings of the moment, and whose memory it holds.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use cohabit_types::{Bytes, DeviceId, GpuReading};
use nvml_wrapper::enum_wrappers::device::TemperatureSensor;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;
use nvml_wrapper::{Device as Handle, Nvml};

use super::GpuError;
use super::performance::Performance;
use super::trouble::{if_reported, is_unknown_here, trouble};

/// How often a list is asked for that grows while it is read.
const MAX_ATTEMPTS: u32 = 5;
const MILLIWATTS: f64 = 1e3;
const PERCENT: f64 = 1e2;

/// What one look at a GPU shows.
#[derive(Debug, Clone, PartialEq)]
pub struct GpuScan {
    /// Readings of the moment.
    pub reading: GpuReading,
    /// Processes that hold memory of it, each once, by their number.
    pub processes: Vec<GpuProcess>,
}

/// A process on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuProcess {
    /// By the numbers of the host.
    pub pid: i32,
    /// Memory it holds, where the driver tells.
    pub memory: Option<Bytes>,
}

/// Looks at a GPU; means over time begin with the last look.
pub(super) fn look<'nvml>(
    nvml: &'nvml Nvml,
    id: &DeviceId,
    performance: &mut Performance<'nvml>,
) -> Result<GpuScan, GpuError> {
    let gpu = match nvml.device_by_uuid(id.as_str()) {
        Ok(gpu) => gpu,
        Err(NvmlError::NotFound) => {
            let advice = "look at dmesg for its Xid errors";
            return Err(GpuError::Lost(format!("the NVIDIA driver does not know {id} any more: {advice}")));
        }
        Err(error) => return Err(trouble(id, &error)),
    };
    let mut look = || -> Result<GpuScan, NvmlError> {
        let reading = GpuReading { performance: performance.since_last(id, &gpu)?, ..reading(&gpu)? };
        let list_processes = [
            list_processes(|| gpu.running_compute_processes())?,
            list_processes(|| gpu.mps_running_compute_processes())?,
        ];
        Ok(GpuScan { reading, processes: deduplicate(list_processes.concat()) })
    };
    look().map_err(|error| trouble(id, &error))
}

fn reading(gpu: &Handle<'_>) -> Result<GpuReading, NvmlError> {
    Ok(GpuReading {
        utilisation: if_reported(gpu.utilization_rates())?.map(|rates| f64::from(rates.gpu) / PERCENT),
        memory_used: if_reported(gpu.memory_info())?.map(|memory| Bytes(memory.used + memory.reserved)),
        power: if_reported(gpu.power_usage())?.map(|milliwatts| f64::from(milliwatts) / MILLIWATTS),
        temperature: if_reported(gpu.temperature(TemperatureSensor::Gpu))?.map(f64::from),
        performance: None,
    })
}

/// A list of processes. One that comes while the list is read makes it too long for its place: then it is
/// read anew.
fn list_processes(
    mut read: impl FnMut() -> Result<Vec<ProcessInfo>, NvmlError>,
) -> Result<Vec<ProcessInfo>, NvmlError> {
    for _ in 1..MAX_ATTEMPTS {
        match read() {
            Err(NvmlError::InsufficientSize(_)) => {}
            Err(error) if is_unknown_here(&error) => return Ok(Vec::new()),
            answer => return answer,
        }
    }
    read()
}

/// A client of MPS may be in both lists; what holds more memory is nearer to the truth.
fn deduplicate(list_processes: Vec<ProcessInfo>) -> Vec<GpuProcess> {
    let mut memory_of: BTreeMap<i32, Option<Bytes>> = BTreeMap::new();
    for process in list_processes {
        let Ok(pid) = process.pid.try_into() else { continue };
        let memory = match process.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => Some(Bytes(bytes)),
            UsedGpuMemory::Unavailable => None,
        };
        match memory_of.entry(pid) {
            Entry::Vacant(entry) => _ = entry.insert(memory),
            Entry::Occupied(mut entry) => _ = entry.insert(memory.max(*entry.get())),
        }
    }
    memory_of.into_iter().map(|(pid, memory)| GpuProcess { pid, memory }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, used_gpu_memory: UsedGpuMemory) -> ProcessInfo {
        ProcessInfo { pid, used_gpu_memory, gpu_instance_id: None, compute_instance_id: None }
    }

    #[test]
    fn a_process_of_both_lists_is_told_once_with_the_larger_memory() {
        let list_processes = vec![
            process(7, UsedGpuMemory::Used(10)),
            process(5, UsedGpuMemory::Unavailable),
            process(7, UsedGpuMemory::Used(30)),
            process(7, UsedGpuMemory::Unavailable),
        ];
        let expected = [GpuProcess { pid: 5, memory: None }, GpuProcess { pid: 7, memory: Some(Bytes(30)) }];
        assert_eq!(deduplicate(list_processes), expected);
    }

    #[test]
    fn a_list_that_grows_while_it_is_read_is_read_anew_but_not_for_ever() {
        let mut calls = 0;
        let grown = list_processes(|| {
            calls += 1;
            if calls < 3 {
                Err(NvmlError::InsufficientSize(None))
            } else {
                Ok(vec![process(1, UsedGpuMemory::Used(1))])
            }
        });
        assert_eq!((grown.unwrap().len(), calls), (1, 3));
        assert!(list_processes(|| Err(NvmlError::InsufficientSize(None))).is_err());
    }

    #[test]
    fn a_driver_without_such_a_list_has_none_and_a_lost_gpu_is_an_error() {
        assert!(list_processes(|| Err(NvmlError::NotSupported)).unwrap().is_empty());
        assert!(list_processes(|| Err(NvmlError::GpuLost)).is_err());
    }
}
