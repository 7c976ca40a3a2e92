//! Properties and present readings of a GPU.

use std::ffi::{c_char, c_int, c_uint};

use cohabit_fakes::{ComputeMode, FakeGpu, Mig};
use nvml_wrapper_sys::bindings::*;

use crate::library::{Code, field, give, give_text, gpu, tell, world};

/// The version field of the second version of a structure.
const MEMORY_VERSION: u32 = size_of::<nvmlMemory_v2_t>() as u32 | 2 << 24;

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetName(device: nvmlDevice_t, place: *mut c_char, room: c_uint) -> Code {
    give_text(place, room, gpu("nvmlDeviceGetName", device).map(|gpu| gpu.model))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetUUID(device: nvmlDevice_t, place: *mut c_char, room: c_uint) -> Code {
    give_text(place, room, gpu("nvmlDeviceGetUUID", device).map(|gpu| gpu.uuid))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetIndex(device: nvmlDevice_t, place: *mut c_uint) -> Code {
    tell("nvmlDeviceGetIndex", device, place, position)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMinorNumber(device: nvmlDevice_t, place: *mut c_uint) -> Code {
    tell("nvmlDeviceGetMinorNumber", device, place, position)
}

fn position(gpu: &FakeGpu) -> Result<c_uint, Code> {
    let found = world()?.gpus().iter().position(|it| it.uuid == gpu.uuid);
    found.map(|index| index as c_uint).ok_or(nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetPciInfo_v3(device: nvmlDevice_t, place: *mut nvmlPciInfo_t) -> Code {
    tell("nvmlDeviceGetPciInfo_v3", device, place, |gpu| pci(&gpu.pci))
}

/// The PCI address in the form of the library.
pub(crate) fn pci(address: &str) -> Result<nvmlPciInfo_t, Code> {
    let numbers = address.split([':', '.']).map(|part| u32::from_str_radix(part, 16));
    let numbers: Vec<u32> =
        numbers.collect::<Result<_, _>>().map_err(|_| nvmlReturn_enum_NVML_ERROR_UNKNOWN)?;
    let [domain, bus, device, _function] = numbers[..] else {
        return Err(nvmlReturn_enum_NVML_ERROR_UNKNOWN);
    };
    Ok(nvmlPciInfo_t {
        busIdLegacy: field(&address.chars().skip(4).collect::<String>()),
        domain,
        bus,
        device,
        pciDeviceId: 0xFA4E_10DE,
        pciSubSystemId: 0,
        busId: field(address),
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMemoryInfo_v2(device: nvmlDevice_t, place: *mut nvmlMemory_v2_t) -> Code {
    // SAFETY: by NVML's interface, the caller's structure begins with its version.
    if place.is_null() || unsafe { (*place).version } != MEMORY_VERSION {
        return nvmlReturn_enum_NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    tell("nvmlDeviceGetMemoryInfo_v2", device, place, |gpu| {
        let used = world()?.memory_used(gpu);
        Ok(nvmlMemory_v2_t {
            version: MEMORY_VERSION,
            total: gpu.memory,
            reserved: gpu.reserved,
            free: gpu.memory - used,
            used: used - gpu.reserved,
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetUtilizationRates(device: nvmlDevice_t, place: *mut nvmlUtilization_t) -> Code {
    let rates = |gpu: &FakeGpu| Ok(nvmlUtilization_t { gpu: gpu.utilization, memory: gpu.utilization / 2 });
    tell("nvmlDeviceGetUtilizationRates", device, place, rates)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetCudaComputeCapability(
    device: nvmlDevice_t,
    major: *mut c_int,
    minor: *mut c_int,
) -> Code {
    let capability = gpu("nvmlDeviceGetCudaComputeCapability", device).map(|gpu| gpu.compute_capability);
    match give(major, capability.map(|it| it.0)) {
        nvmlReturn_enum_NVML_SUCCESS => give(minor, capability.map(|it| it.1)),
        code => code,
    }
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetArchitecture(device: nvmlDevice_t, place: *mut nvmlDeviceArchitecture_t) -> Code {
    tell("nvmlDeviceGetArchitecture", device, place, |gpu| {
        Ok(match gpu.compute_capability {
            (3, _) => NVML_DEVICE_ARCH_KEPLER,
            (5, _) => NVML_DEVICE_ARCH_MAXWELL,
            (6, _) => NVML_DEVICE_ARCH_PASCAL,
            (7, 5) => NVML_DEVICE_ARCH_TURING,
            (7, _) => NVML_DEVICE_ARCH_VOLTA,
            (8, 9) => NVML_DEVICE_ARCH_ADA,
            (8, _) => NVML_DEVICE_ARCH_AMPERE,
            (9, _) => NVML_DEVICE_ARCH_HOPPER,
            (10..=12, _) => NVML_DEVICE_ARCH_BLACKWELL,
            _ => NVML_DEVICE_ARCH_UNKNOWN,
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetNumGpuCores(device: nvmlDevice_t, place: *mut c_uint) -> Code {
    let cores = |gpu: &FakeGpu| Ok(gpu.multiprocessors * gpu.cores_per_multiprocessor);
    tell("nvmlDeviceGetNumGpuCores", device, place, cores)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetComputeMode(device: nvmlDevice_t, place: *mut nvmlComputeMode_t) -> Code {
    tell("nvmlDeviceGetComputeMode", device, place, |gpu| {
        Ok(match gpu.compute_mode {
            ComputeMode::Default => nvmlComputeMode_enum_NVML_COMPUTEMODE_DEFAULT,
            ComputeMode::ExclusiveProcess => nvmlComputeMode_enum_NVML_COMPUTEMODE_EXCLUSIVE_PROCESS,
            ComputeMode::Prohibited => nvmlComputeMode_enum_NVML_COMPUTEMODE_PROHIBITED,
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetPersistenceMode(device: nvmlDevice_t, place: *mut nvmlEnableState_t) -> Code {
    tell("nvmlDeviceGetPersistenceMode", device, place, |gpu| {
        Ok(match gpu.persistence_mode {
            true => nvmlEnableState_enum_NVML_FEATURE_ENABLED,
            false => nvmlEnableState_enum_NVML_FEATURE_DISABLED,
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMigMode(device: nvmlDevice_t, now: *mut c_uint, soon: *mut c_uint) -> Code {
    let mode = gpu("nvmlDeviceGetMigMode", device).and_then(|gpu| match gpu.mig {
        Mig::Unknown => Err(nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED),
        Mig::Off => Ok(0),
        Mig::On => Ok(1),
    });
    match give(now, mode) {
        nvmlReturn_enum_NVML_SUCCESS => give(soon, mode),
        code => code,
    }
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetTemperature(
    device: nvmlDevice_t,
    _sensor: nvmlTemperatureSensors_t,
    place: *mut c_uint,
) -> Code {
    tell("nvmlDeviceGetTemperature", device, place, |gpu| Ok(gpu.temperature))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetPowerUsage(device: nvmlDevice_t, place: *mut c_uint) -> Code {
    tell("nvmlDeviceGetPowerUsage", device, place, |gpu| Ok(gpu.power))
}
