//! The processes on a GPU: lists whose length is queried first and may grow before they are read.

use std::collections::BTreeMap;
use std::ffi::c_uint;
use std::sync::{Mutex, PoisonError};

use cohabit_fakes::{FakeGpu, GpuRoute, Process};
use nvml_wrapper_sys::bindings::*;

use crate::library::{Code, gpu, world};

/// How many lists of each GPU were too long so far because a process was scripted to start in between.
static RACED: Mutex<BTreeMap<String, u32>> = Mutex::new(BTreeMap::new());

/// The processes that access the GPU directly, including MPS servers.
#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetComputeRunningProcesses_v3(
    device: nvmlDevice_t,
    count: *mut c_uint,
    infos: *mut nvmlProcessInfo_t,
) -> Code {
    let listed = |process: &Process| !matches!(process.via, GpuRoute::Client(_) | GpuRoute::Graphics);
    list("nvmlDeviceGetComputeRunningProcesses_v3", device, count, infos, listed)
}

/// The clients of MPS servers.
#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMPSComputeRunningProcesses_v3(
    device: nvmlDevice_t,
    count: *mut c_uint,
    infos: *mut nvmlProcessInfo_t,
) -> Code {
    let listed = |process: &Process| matches!(process.via, GpuRoute::Client(_));
    list("nvmlDeviceGetMPSComputeRunningProcesses_v3", device, count, infos, listed)
}

/// The processes that draw.
#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetGraphicsRunningProcesses_v3(
    device: nvmlDevice_t,
    count: *mut c_uint,
    infos: *mut nvmlProcessInfo_t,
) -> Code {
    let listed = |process: &Process| process.via == GpuRoute::Graphics;
    list("nvmlDeviceGetGraphicsRunningProcesses_v3", device, count, infos, listed)
}

fn list(
    function: &str,
    device: nvmlDevice_t,
    count: *mut c_uint,
    infos: *mut nvmlProcessInfo_t,
    listed: impl Fn(&Process) -> bool,
) -> Code {
    let (gpu, mut processes) =
        match gpu(function, device).and_then(|gpu| Ok((world()?.processes_on(&gpu.uuid), gpu))) {
            Ok((processes, gpu)) => (gpu, processes),
            Err(code) => return code,
        };
    processes.retain(listed);
    if count.is_null() {
        return nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT;
    }
    // SAFETY: by NVML's interface, the caller passes the size of its buffer here and gets the needed size.
    let room = unsafe { count.replace(processes.len() as c_uint) } as usize;
    if infos.is_null() && processes.is_empty() {
        return nvmlReturn_enum_NVML_SUCCESS;
    }
    if infos.is_null() || room < processes.len() || races(&gpu) {
        return nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE;
    }
    for (index, process) in processes.iter().enumerate() {
        let info = nvmlProcessInfo_t {
            pid: process.pid as c_uint,
            usedGpuMemory: process.holds.get(&gpu.uuid).copied().unwrap_or(0),
            // Not an instance of a partitioned GPU.
            gpuInstanceId: c_uint::MAX,
            computeInstanceId: c_uint::MAX,
        };
        // SAFETY: the buffer has the size that the caller passed, which is enough.
        unsafe { infos.add(index).write(info) };
    }
    nvmlReturn_enum_NVML_SUCCESS
}

/// Whether a process is scripted to have started since the list was counted.
fn races(gpu: &FakeGpu) -> bool {
    let mut raced = RACED.lock().unwrap_or_else(PoisonError::into_inner);
    let so_far = raced.entry(gpu.uuid.clone()).or_default();
    let races = *so_far < gpu.racing_lists;
    *so_far += u32::from(races);
    races
}
