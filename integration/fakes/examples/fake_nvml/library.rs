//! What all functions share: the world, handles, scripted errors, and writing results.

use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::{Mutex, PoisonError};

use cohabit_fakes::{FakeGpu, FakeWorld, NvmlFault};
use nix::libc;
use nvml_wrapper_sys::bindings::*;

pub(crate) type Code = nvmlReturn_t;

/// The UUIDs of the GPUs with a handle. A handle is an index into this list, counted from 1.
static HANDLES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The world of this library.
pub(crate) fn world() -> Result<FakeWorld, Code> {
    FakeWorld::find(&own_path()).ok_or(nvmlReturn_enum_NVML_ERROR_DRIVER_NOT_LOADED)
}

/// The path from which this library was loaded.
fn own_path() -> std::path::PathBuf {
    let mut found = libc::Dl_info {
        dli_fname: ptr::null(),
        dli_fbase: ptr::null_mut(),
        dli_sname: ptr::null(),
        dli_saddr: ptr::null_mut(),
    };
    // SAFETY: the address lies in this library, and the result has its own storage.
    let known = unsafe { libc::dladdr(own_path as *const libc::c_void, &raw mut found) };
    if known == 0 || found.dli_fname.is_null() {
        return Path::new("").to_owned();
    }
    // SAFETY: the loader keeps the name as long as the library is loaded.
    let name = unsafe { CStr::from_ptr(found.dli_fname) };
    OsStr::from_bytes(name.to_bytes()).into()
}

/// The handle of the GPU with this UUID.
pub(crate) fn handle_of(uuid: &str) -> nvmlDevice_t {
    let mut handles = HANDLES.lock().unwrap_or_else(PoisonError::into_inner);
    let place = handles.iter().position(|it| it == uuid).unwrap_or_else(|| {
        handles.push(uuid.to_owned());
        handles.len() - 1
    });
    ptr::without_provenance_mut(place + 1)
}

fn uuid_of(handle: nvmlDevice_t) -> Option<String> {
    let handles = HANDLES.lock().unwrap_or_else(PoisonError::into_inner);
    handles.get(handle.addr().checked_sub(1)?).cloned()
}

/// The present state of a GPU, or the scripted error of this function.
pub(crate) fn gpu(function: &str, handle: nvmlDevice_t) -> Result<FakeGpu, Code> {
    let uuid = uuid_of(handle).ok_or(nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT)?;
    let gpu = world()?.gpu(&uuid).ok_or(nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST)?;
    match gpu.faults.get(function).or_else(|| gpu.faults.get("*")) {
        Some(fault) => Err(code(*fault)),
        None => Ok(gpu),
    }
}

fn code(fault: NvmlFault) -> Code {
    match fault {
        NvmlFault::Lost => nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST,
        NvmlFault::ResetRequired => nvmlReturn_enum_NVML_ERROR_RESET_REQUIRED,
        NvmlFault::NotFound => nvmlReturn_enum_NVML_ERROR_NOT_FOUND,
        NvmlFault::NotSupported => nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED,
        NvmlFault::NoPermission => nvmlReturn_enum_NVML_ERROR_NO_PERMISSION,
        NvmlFault::Unknown => nvmlReturn_enum_NVML_ERROR_UNKNOWN,
    }
}

/// Writes the result to the caller's pointer.
pub(crate) fn give<T>(place: *mut T, answer: Result<T, Code>) -> Code {
    match answer {
        Ok(_) if place.is_null() => nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT,
        Ok(value) => {
            // SAFETY: by NVML's interface, the caller's pointer leads to room for one value.
            unsafe { place.write(value) };
            nvmlReturn_enum_NVML_SUCCESS
        }
        Err(code) => code,
    }
}

/// Writes a property of a GPU.
pub(crate) fn tell<T>(
    function: &str,
    handle: nvmlDevice_t,
    place: *mut T,
    answer: impl FnOnce(&FakeGpu) -> Result<T, Code>,
) -> Code {
    give(place, gpu(function, handle).and_then(|gpu| answer(&gpu)))
}

/// Writes a text to the caller's buffer of this size.
pub(crate) fn give_text(place: *mut c_char, room: u32, text: Result<String, Code>) -> Code {
    let text = match text {
        Ok(text) => text,
        Err(code) => return code,
    };
    if place.is_null() {
        return nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT;
    }
    if text.len() >= room as usize {
        return nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE;
    }
    for (index, byte) in text.bytes().chain([0]).enumerate() {
        // SAFETY: by NVML's interface, the buffer has the given size, and the text fits.
        unsafe { place.add(index).write(byte as c_char) };
    }
    nvmlReturn_enum_NVML_SUCCESS
}

/// A text in a field of this size.
pub(crate) fn field<const SIZE: usize>(text: &str) -> [c_char; SIZE] {
    let mut field = [0; SIZE];
    // The last byte stays 0.
    for (place, byte) in field.iter_mut().take(SIZE - 1).zip(text.bytes()) {
        *place = byte as c_char;
    }
    field
}
