//! Critical errors: event sets, and waiting for the next error of a GPU in a set.

use std::ffi::{c_uint, c_ulonglong};
use std::time::{Duration, Instant};

use nvml_wrapper_sys::bindings::*;

use crate::library::{Code, give, gpu, handle_of, tell, world};

/// The UUIDs of the GPUs in the set.
type Set = Vec<String>;

const XID: c_ulonglong = nvmlEventTypeXidCriticalError as c_ulonglong;

/// The time between two polls of the world.
const LOOK: Duration = Duration::from_millis(5);

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetSupportedEventTypes(device: nvmlDevice_t, place: *mut c_ulonglong) -> Code {
    tell("nvmlDeviceGetSupportedEventTypes", device, place, |_| Ok(XID))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlEventSetCreate(place: *mut nvmlEventSet_t) -> Code {
    let set: Box<Set> = Box::default();
    give(place, Ok(Box::into_raw(set).cast()))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlEventSetFree(set: nvmlEventSet_t) -> Code {
    if set.is_null() {
        return nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT;
    }
    // SAFETY: by NVML's interface, it comes from `nvmlEventSetCreate` and is freed once.
    drop(unsafe { Box::from_raw(set.cast::<Set>()) });
    nvmlReturn_enum_NVML_SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceRegisterEvents(
    device: nvmlDevice_t,
    types: c_ulonglong,
    set: nvmlEventSet_t,
) -> Code {
    match gpu("nvmlDeviceRegisterEvents", device) {
        Ok(_) if types & !XID != 0 => nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED,
        Ok(_) if set.is_null() => nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT,
        Ok(gpu) => {
            // SAFETY: by NVML's interface, it comes from `nvmlEventSetCreate`, and no thread waits for it
            // meanwhile.
            unsafe { &mut *set.cast::<Set>() }.push(gpu.uuid);
            nvmlReturn_enum_NVML_SUCCESS
        }
        Err(code) => code,
    }
}

#[unsafe(no_mangle)]
extern "C" fn nvmlEventSetWait_v2(
    set: nvmlEventSet_t,
    place: *mut nvmlEventData_t,
    timeout_ms: c_uint,
) -> Code {
    if set.is_null() {
        return nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT;
    }
    // SAFETY: by NVML's interface, it comes from `nvmlEventSetCreate` and does not change while this waits.
    let gpus = unsafe { &*set.cast::<Set>() };
    give(place, next(gpus, Duration::from_millis(timeout_ms.into())))
}

fn next(gpus: &Set, patience: Duration) -> Result<nvmlEventData_t, Code> {
    let begin = Instant::now();
    loop {
        let lost = gpus.iter().any(|uuid| gpu("nvmlEventSetWait_v2", handle_of(uuid)).is_err());
        let taken = world()?.take_xid(gpus).map_err(|_| nvmlReturn_enum_NVML_ERROR_UNKNOWN)?;
        if let Some(xid) = taken {
            return Ok(nvmlEventData_t {
                device: handle_of(&xid.gpu),
                eventType: XID,
                eventData: xid.code,
                gpuInstanceId: c_uint::MAX,
                computeInstanceId: c_uint::MAX,
            });
        }
        if lost {
            return Err(nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST);
        }
        if begin.elapsed() >= patience {
            return Err(nvmlReturn_enum_NVML_ERROR_TIMEOUT);
        }
        std::thread::sleep(LOOK);
    }
}
