//! Scans a GPU: present readings, and the processes that use its memory.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use cohabit_types::{Bytes, DeviceId, GpuReading};
use nvml_wrapper::enum_wrappers::device::TemperatureSensor;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;
use nvml_wrapper::{Device as Handle, Nvml};

use super::error::GpuError;
use super::error::{gpu_error, if_reported, is_unknown_here};
use super::performance::Performance;

/// How often a list is read that grows while it is read.
const MAX_ATTEMPTS: u32 = 5;
const MILLIWATTS: f64 = 1e3;
const PERCENT: f64 = 1e2;

/// The result of one scan of a GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct GpuScan {
    /// Present readings.
    pub reading: GpuReading,
    /// Processes that hold memory of the GPU, each once, ordered by process id.
    pub processes: Vec<GpuProcess>,
}

/// A process on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuProcess {
    /// Its process id on the host.
    pub pid: i32,
    /// GPU memory that it holds, where the driver reports it.
    pub memory: Option<Bytes>,
}

/// Scans a GPU. Averages cover the time since the last scan.
pub(super) fn scan<'nvml>(
    nvml: &'nvml Nvml,
    id: &DeviceId,
    performance: &mut Performance<'nvml>,
) -> Result<GpuScan, GpuError> {
    let gpu = match nvml.device_by_uuid(id.as_str()) {
        Ok(gpu) => gpu,
        Err(NvmlError::NotFound) => {
            let advice = "look for its Xid errors in dmesg";
            return Err(GpuError::Lost(format!("the NVIDIA driver no longer finds {id}: {advice}")));
        }
        Err(error) => return Err(gpu_error(id, &error)),
    };
    let mut scan = || -> Result<GpuScan, NvmlError> {
        let reading = GpuReading { performance: performance.since_last(id, &gpu)?, ..reading(&gpu)? };
        let processes = [
            list_processes(|| gpu.running_compute_processes())?,
            list_processes(|| gpu.mps_running_compute_processes())?,
            list_processes(|| gpu.running_graphics_processes())?,
        ];
        Ok(GpuScan { reading, processes: deduplicate(processes.concat()) })
    };
    scan().map_err(|error| gpu_error(id, &error))
}

fn reading(gpu: &Handle<'_>) -> Result<GpuReading, NvmlError> {
    Ok(GpuReading {
        utilization: if_reported(gpu.utilization_rates())?.map(|rates| f64::from(rates.gpu) / PERCENT),
        memory_used: if_reported(gpu.memory_info())?.map(|memory| Bytes(memory.used + memory.reserved)),
        power: if_reported(gpu.power_usage())?.map(|milliwatts| f64::from(milliwatts) / MILLIWATTS),
        temperature: if_reported(gpu.temperature(TemperatureSensor::Gpu))?.map(f64::from),
        performance: None,
    })
}

/// A list of processes. A process that arrives while the list is read makes it too long for its buffer; the
/// list is read again then.
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

/// A process may be in several lists: a client of MPS, or one that also draws. The larger memory is the more
/// accurate one.
fn deduplicate(processes: Vec<ProcessInfo>) -> Vec<GpuProcess> {
    let mut memory_of: BTreeMap<i32, Option<Bytes>> = BTreeMap::new();
    for process in processes {
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
    fn a_process_in_both_lists_is_reported_once_with_the_larger_memory() {
        let processes = vec![
            process(7, UsedGpuMemory::Used(10)),
            process(5, UsedGpuMemory::Unavailable),
            process(7, UsedGpuMemory::Used(30)),
            process(7, UsedGpuMemory::Unavailable),
        ];
        let expected = [GpuProcess { pid: 5, memory: None }, GpuProcess { pid: 7, memory: Some(Bytes(30)) }];
        assert_eq!(deduplicate(processes), expected);
    }

    #[test]
    fn a_list_that_grows_while_it_is_read_is_read_again_a_few_times() {
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
    fn a_driver_without_the_list_yields_none_and_a_lost_gpu_is_an_error() {
        assert!(list_processes(|| Err(NvmlError::NotSupported)).unwrap().is_empty());
        assert!(list_processes(|| Err(NvmlError::GpuLost)).is_err());
    }
}
