//! Initialisation, versions, and the list of GPUs.

use std::ffi::{CStr, c_char, c_int, c_uint};

use cohabit_fakes::{FakeWorld, LibraryStart};
use nvml_wrapper_sys::bindings::*;

use crate::library::{Code, give, give_text, gpu, handle_of, world};

#[unsafe(no_mangle)]
extern "C" fn nvmlInit_v2() -> Code {
    match world().map(|world| world.library().start) {
        Ok(LibraryStart::Works) => nvmlReturn_enum_NVML_SUCCESS,
        Ok(LibraryStart::DriverNotLoaded) => nvmlReturn_enum_NVML_ERROR_DRIVER_NOT_LOADED,
        Ok(LibraryStart::VersionMismatch) => nvmlReturn_enum_NVML_ERROR_LIB_RM_VERSION_MISMATCH,
        Ok(LibraryStart::NoPermission) => nvmlReturn_enum_NVML_ERROR_NO_PERMISSION,
        Err(code) => code,
    }
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInitWithFlags(_flags: c_uint) -> Code {
    nvmlInit_v2()
}

#[unsafe(no_mangle)]
extern "C" fn nvmlShutdown() -> Code {
    nvmlReturn_enum_NVML_SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn nvmlErrorString(code: Code) -> *const c_char {
    let text = match code {
        nvmlReturn_enum_NVML_SUCCESS => c"Success (of a fake NVML)",
        nvmlReturn_enum_NVML_ERROR_DRIVER_NOT_LOADED => c"Driver Not Loaded (says a fake NVML)",
        nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST => c"GPU is lost (says a fake NVML)",
        _ => c"An error of a fake NVML",
    };
    text.as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn nvmlSystemGetDriverVersion(place: *mut c_char, room: c_uint) -> Code {
    give_text(place, room, world().map(|world| world.library().driver))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlSystemGetNVMLVersion(place: *mut c_char, room: c_uint) -> Code {
    give_text(place, room, world().map(|world| format!("13.{}", world.library().driver)))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlSystemGetCudaDriverVersion_v2(place: *mut c_int) -> Code {
    give(place, world().map(|world| world.library().cuda))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetCount_v2(place: *mut c_uint) -> Code {
    give(place, world().map(|world| world.gpus().len() as c_uint))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, place: *mut nvmlDevice_t) -> Code {
    let uuid = |world: FakeWorld| world.gpus().into_iter().nth(index as usize).map(|gpu| gpu.uuid);
    let found = world().and_then(|world| uuid(world).ok_or(nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT));
    give(place, found.and_then(|uuid| handle("nvmlDeviceGetHandleByIndex_v2", &uuid)))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetHandleByUUID(uuid: *const c_char, place: *mut nvmlDevice_t) -> Code {
    if uuid.is_null() {
        return nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT;
    }
    // SAFETY: by NVML's interface, a text that ends with 0.
    let uuid = unsafe { CStr::from_ptr(uuid) }.to_string_lossy();
    let found = world().and_then(|world| world.gpu(&uuid).ok_or(nvmlReturn_enum_NVML_ERROR_NOT_FOUND));
    give(place, found.and_then(|gpu| handle("nvmlDeviceGetHandleByUUID", &gpu.uuid)))
}

/// A handle, unless this function is scripted to fail for the GPU.
fn handle(function: &str, uuid: &str) -> Result<nvmlDevice_t, Code> {
    let handle = handle_of(uuid);
    gpu(function, handle).map(|_| handle)
}
