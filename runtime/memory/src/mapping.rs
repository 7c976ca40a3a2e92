//! Read-only views of sealed memory: the only unsafe code of this crate.
#![expect(unsafe_code, reason = "see the note at each step")]

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::os::fd::AsFd;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::{Arc, Weak};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::errors::MemoryError;
use crate::memfd::SealedMemory;

/// A read-only mapping of sealed memory. Clones are the same mapping, which ends with the last of them.
#[derive(Debug, Clone)]
pub struct MemoryMapping(Arc<MappedBytes>);

/// A mapping that somebody else keeps.
#[derive(Debug, Clone)]
pub struct WeakMapping(Weak<MappedBytes>);

/// What is dropped after the end of a mapping.
pub(crate) type MappingGuard = Box<dyn Any + Send + Sync>;

impl MemoryMapping {
    pub(crate) fn of(
        memory: &SealedMemory,
        guard: Option<MappingGuard>,
    ) -> Result<MemoryMapping, MemoryError> {
        match map(memory, MapFlags::SHARED) {
            // Kernels before 6.7 refuse every shared mapping of memory that is sealed against writes. The
            // pages of a private one are the same, unless this process itself asks the kernel for write
            // access to them.
            Err(Errno::PERM) => map(memory, MapFlags::PRIVATE),
            other => other,
        }
        .map(|(start, length)| MemoryMapping(Arc::new(MappedBytes { start, length, _guard: guard })))
        .map_err(MemoryError::io("map shared memory"))
    }

    /// The same mapping, without keeping it.
    #[must_use]
    pub fn downgrade(&self) -> WeakMapping {
        WeakMapping(Arc::downgrade(&self.0))
    }
}

impl WeakMapping {
    /// The mapping, if somebody still keeps it.
    #[must_use]
    pub fn upgrade(&self) -> Option<MemoryMapping> {
        self.0.upgrade().map(MemoryMapping)
    }
}

impl Deref for MemoryMapping {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let MappedBytes { start, length, .. } = *self.0;
        // SAFETY: `start` is dangling and `length` zero, or they are a mapping that lives as long as `self`.
        // Its bytes exist, since the file has them all and cannot shrink or be punched, and they never
        // change, since nobody can write the file: `SealedMemory` has checked the seals.
        unsafe { slice::from_raw_parts(start.as_ptr(), length) }
    }
}

struct MappedBytes {
    start: NonNull<u8>,
    length: usize,
    /// Fields are dropped after the value itself, which unmaps.
    _guard: Option<MappingGuard>,
}

impl fmt::Debug for MappedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at {:p}", self.length, self.start)
    }
}

// SAFETY: the bytes never change, any thread may unmap them, and the guard is `Send` and `Sync`.
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

/// Where the mapping is, and its length.
fn map(memory: &SealedMemory, flags: MapFlags) -> Result<(NonNull<u8>, usize), Errno> {
    let length = usize::try_from(memory.bytes()).map_err(|_| Errno::NOMEM)?;
    if length == 0 {
        // The kernel maps nothing of no bytes.
        return Ok((NonNull::dangling(), length));
    }
    // SAFETY: the kernel chooses an unused place.
    let start = unsafe { mmap(ptr::null_mut(), length, ProtFlags::READ, flags, memory.as_fd(), 0) }?;
    NonNull::new(start.cast()).map(|start| (start, length)).ok_or(Errno::NOMEM)
}
