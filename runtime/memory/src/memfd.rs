//! Memory without a name: allocated, filled, sealed, and checked by whoever gets its descriptor.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate,
    memfd_create,
};
use rustix::io::{Errno, pwrite, retry_on_intr};
use rustix::process::{Resource, getrlimit};

use crate::errors::MemoryError;
use crate::mapping::MemoryMapping;
use crate::reading::read_exact_at;

/// The most bytes of one object.
pub const MAX_OBJECT: u64 = 1 << 40;

/// What is allocated in one call. A signal undoes the call that it interrupts, so that a long one might never
/// end in a process with a timer.
const ALLOCATION_STEP: u64 = 64 << 20;

/// The size stays as it was allocated, whatever the maker does.
const SIZE_SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW);
/// Nothing changes any more, nor do the seals.
const ALL_SEALS: SealFlags = SIZE_SEALS.union(SealFlags::WRITE).union(SealFlags::SEAL);

/// Memory of a fixed size that is being filled. All of it is allocated and zero at first.
#[derive(Debug)]
pub struct FreshMemory {
    fd: OwnedFd,
    bytes: u64,
}

impl FreshMemory {
    /// Allocates memory. It is charged to the process that calls this, whoever fills it.
    ///
    /// # Errors
    /// If the size is above a limit or there is not that much memory.
    pub fn allocate(bytes: u64) -> Result<FreshMemory, MemoryError> {
        check_limits(bytes)?;
        let fd = create()?;
        // With all its pages: if one were missing later, a signal would end whoever touches it.
        let mut end = 0;
        while end < bytes {
            let step = ALLOCATION_STEP.min(bytes - end);
            retry_on_intr(|| fallocate(&fd, FallocateFlags::empty(), end, step))
                .map_err(|errno| MemoryError::allocation(errno, bytes))?;
            end += step;
        }
        fcntl_add_seals(&fd, SIZE_SEALS).map_err(MemoryError::io("seal the size of shared memory"))?;
        Ok(FreshMemory { fd, bytes })
    }

    /// Memory whose pages are allocated when they are written. It is charged to the process that writes.
    /// [`FreshMemory::seal`] fails as long as one is missing.
    ///
    /// # Errors
    /// If the size is above a limit.
    pub fn reserve(bytes: u64) -> Result<FreshMemory, MemoryError> {
        check_limits(bytes)?;
        let fd = create()?;
        ftruncate(&fd, bytes).map_err(|errno| MemoryError::allocation(errno, bytes))?;
        fcntl_add_seals(&fd, SIZE_SEALS).map_err(MemoryError::io("seal the size of shared memory"))?;
        Ok(FreshMemory { fd, bytes })
    }

    /// Memory that another process has allocated for this one to fill.
    ///
    /// # Errors
    /// If the file is no such memory, or has another size.
    pub fn from_fd(fd: OwnedFd, bytes: u64) -> Result<FreshMemory, MemoryError> {
        check(fd.as_fd(), bytes, SIZE_SEALS)?;
        Ok(FreshMemory { fd, bytes })
    }

    /// The size.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes these bytes from this place on. It copies straight into the pages: a mapping would cost a page
    /// fault for each of them, and could outlive the seals.
    ///
    /// # Errors
    /// If they reach beyond the end, or the kernel refuses.
    pub fn write_at(&self, place: u64, mut bytes: &[u8]) -> Result<(), MemoryError> {
        let end = place.saturating_add(bytes.len() as u64);
        if end > self.bytes {
            return Err(MemoryError::WrongSize { stated: end, found: self.bytes });
        }
        let mut place = place;
        while !bytes.is_empty() {
            let written = retry_on_intr(|| pwrite(&self.fd, bytes, place))
                .map_err(MemoryError::io("write shared memory"))?;
            bytes = &bytes[written..];
            place += written as u64;
        }
        Ok(())
    }

    /// The memory, once the process that got its descriptor has filled and sealed it.
    ///
    /// # Errors
    /// If it is not sealed.
    pub fn into_sealed(self) -> Result<SealedMemory, MemoryError> {
        SealedMemory::from_fd(self.fd, self.bytes)
    }

    /// Makes it immutable, for this process and all others.
    ///
    /// # Errors
    /// If some process has a writable mapping of it.
    pub fn seal(self) -> Result<SealedMemory, MemoryError> {
        match fcntl_add_seals(&self.fd, ALL_SEALS) {
            Ok(()) => SealedMemory::from_fd(self.fd, self.bytes),
            Err(Errno::BUSY) => Err(MemoryError::StillWritable),
            Err(errno) => Err(MemoryError::io("seal shared memory")(errno)),
        }
    }
}

impl AsFd for FreshMemory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Memory that nobody can write, grow, shrink or unseal.
#[derive(Debug)]
pub struct SealedMemory {
    fd: OwnedFd,
    bytes: u64,
}

impl SealedMemory {
    /// Checks a descriptor, which may come from anybody: that it is shared memory of the stated size, sealed
    /// against every change, with all its pages.
    ///
    /// # Errors
    /// If it is not.
    pub fn from_fd(fd: OwnedFd, bytes: u64) -> Result<SealedMemory, MemoryError> {
        check(fd.as_fd(), bytes, ALL_SEALS)?;
        Ok(SealedMemory { fd, bytes })
    }

    /// The size.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Copies the bytes from this place on. Unlike a first look at a mapping, that costs no page faults.
    ///
    /// # Errors
    /// If they reach beyond the end.
    pub fn read_at(&self, place: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        let end = place.saturating_add(into.len() as u64);
        if end > self.bytes {
            return Err(MemoryError::WrongSize { stated: end, found: self.bytes });
        }
        match read_exact_at(self.fd.as_fd(), place, into)? {
            read if read == into.len() => Ok(()),
            read => Err(MemoryError::WrongSize { stated: end, found: place + read as u64 }),
        }
    }

    /// Maps it for reading. The mapping needs the descriptor no more.
    ///
    /// # Errors
    /// If this process has no address space left, or too many mappings.
    pub fn map(&self) -> Result<MemoryMapping, MemoryError> {
        MemoryMapping::of(self, None)
    }

    /// Maps it for reading, with something that is dropped when the memory is mapped no longer.
    ///
    /// # Errors
    /// As of [`SealedMemory::map`]; then the guard is dropped at once.
    pub fn map_with(&self, guard: impl Send + Sync + 'static) -> Result<MemoryMapping, MemoryError> {
        MemoryMapping::of(self, Some(Box::new(guard)))
    }
}

impl AsFd for SealedMemory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A file without a name and size.
fn create() -> Result<OwnedFd, MemoryError> {
    // Kernels from 6.3 on want to be told that it holds no program; earlier ones do not know that flag.
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    memfd_create(c"cohabit-object", flags | MemfdFlags::NOEXEC_SEAL)
        .or_else(|_| memfd_create(c"cohabit-object", flags))
        .map_err(MemoryError::io("create shared memory"))
}

fn check_limits(bytes: u64) -> Result<(), MemoryError> {
    if bytes > MAX_OBJECT {
        return Err(MemoryError::TooLarge { bytes, limit: MAX_OBJECT, limited_by: "Cohabit" });
    }
    // Beyond this limit the kernel would end the process by SIGXFSZ.
    let limit = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
    if bytes > limit {
        return Err(MemoryError::TooLarge {
            bytes,
            limit,
            limited_by: "the limit on file sizes (ulimit -f)",
        });
    }
    Ok(())
}

fn check(fd: BorrowedFd<'_>, bytes: u64, needed: SealFlags) -> Result<(), MemoryError> {
    // The seals first: sealed memory stays as the checks after this one find it. Files of /dev/shm answer
    // with the seal against sealing alone, other files not at all.
    let found = fcntl_get_seals(fd).map_err(|_| MemoryError::NotSealable)?;
    if found.difference(SealFlags::EXEC) != needed {
        return Err(MemoryError::WrongSeals { needed: needed.bits(), found: found.bits() });
    }
    let status = fstat(fd).map_err(MemoryError::io("look at shared memory"))?;
    let size = u64::try_from(status.st_size).unwrap_or(0);
    if size != bytes {
        return Err(MemoryError::WrongSize { stated: bytes, found: size });
    }
    let allocated = u64::try_from(status.st_blocks).unwrap_or(0).saturating_mul(512);
    if allocated < bytes {
        return Err(MemoryError::Sparse { bytes, allocated });
    }
    Ok(())
}
