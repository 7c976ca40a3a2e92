//! Read-only views of sealed memory: the only unsafe code of this crate.
#![expect(unsafe_code, reason = "see the note at each step")]

use std::ops::Deref;
use std::os::fd::AsFd;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::errors::MemoryError;
use crate::memfd::SealedMemory;

/// A read-only mapping of sealed memory. Clones are the same mapping, which ends with the last of them.
#[derive(Debug, Clone)]
pub struct MemoryMapping(Arc<MappedBytes>);

impl MemoryMapping {
    pub(crate) fn of(memory: &SealedMemory) -> Result<MemoryMapping, MemoryError> {
        match map(memory, MapFlags::SHARED) {
            // Kernels before 6.7 refuse every shared mapping of memory that is sealed against writes. The
            // pages of a private one are the same, unless this process itself asks the kernel for write
            // access to them.
            Err(Errno::PERM) => map(memory, MapFlags::PRIVATE),
            other => other,
        }
        .map(|mapped| MemoryMapping(Arc::new(mapped)))
        .map_err(MemoryError::io("map shared memory"))
    }
}

impl Deref for MemoryMapping {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let MappedBytes { start, length } = *self.0;
        // SAFETY: `start` is dangling and `length` zero, or they are a mapping that lives as long as `self`.
        // Its bytes exist, since the file has them all and cannot shrink or be punched, and they never
        // change, since nobody can write the file: `SealedMemory` has checked the seals.
        unsafe { slice::from_raw_parts(start.as_ptr(), length) }
    }
}

#[derive(Debug)]
struct MappedBytes {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the bytes never change, and any thread may unmap them.
unsafe impl Send for MappedBytes {}
// SAFETY: as above.
unsafe impl Sync for MappedBytes {}

impl Drop for MappedBytes {
    fn drop(&mut self) {
        if self.length > 0 {
            // SAFETY: it was mapped by `map`, and nothing borrows it any more. The kernel refuses only
            // what is no mapping.
            let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
        }
    }
}

fn map(memory: &SealedMemory, flags: MapFlags) -> Result<MappedBytes, Errno> {
    let length = usize::try_from(memory.bytes()).map_err(|_| Errno::NOMEM)?;
    if length == 0 {
        // The kernel maps nothing of no bytes.
        return Ok(MappedBytes { start: NonNull::dangling(), length });
    }
    // SAFETY: the kernel chooses an unused place.
    let start = unsafe { mmap(ptr::null_mut(), length, ProtFlags::READ, flags, memory.as_fd(), 0) }?;
    NonNull::new(start.cast()).map(|start| MappedBytes { start, length }).ok_or(Errno::NOMEM)
}
