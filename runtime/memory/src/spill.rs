//! Objects on disk, in files without a name: nothing is left of them when the process ends, however it does.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, fstat, open};
use rustix::io::{Errno, pwrite, retry_on_intr};

use crate::errors::MemoryError;
use crate::memfd::{FreshMemory, SealedMemory};
use crate::reading::read_exact_at;

/// What is copied at once, in bytes: little enough for the caches of the processor.
const PIECE: usize = 1 << 20;

/// An object on disk. The disk space is free once it is dropped.
#[derive(Debug)]
pub struct SpillFile {
    file: OwnedFd,
    bytes: u64,
}

impl SpillFile {
    /// Copies an object to a new file on the file system of this directory.
    ///
    /// # Errors
    /// If the disk is full, or the file system has no unnamed files (`O_TMPFILE`), as NFS.
    pub fn write(object: &SealedMemory, directory: &Path) -> Result<SpillFile, MemoryError> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::EXCL | OFlags::CLOEXEC;
        let file = open(directory, flags, Mode::RUSR | Mode::WUSR)
            .map_err(MemoryError::io("create an unnamed file (O_TMPFILE) to spill an object to"))?;
        let bytes = object.bytes();
        if bytes > 0 {
            // A full disk is noticed before the work. Some file systems cannot tell.
            match retry_on_intr(|| fallocate(&file, FallocateFlags::empty(), 0, bytes)) {
                Ok(()) | Err(Errno::OPNOTSUPP) => {}
                Err(errno) => return Err(MemoryError::io("spill an object")(errno)),
            }
        }
        copy(object.as_fd(), bytes, |piece, place| {
            let written = write_all_at(file.as_fd(), piece, place);
            written.map_err(MemoryError::io("spill an object"))
        })?;
        let spilled = SpillFile { file, bytes };
        spilled.check_length()?;
        Ok(spilled)
    }

    /// The size of the object.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Copies the object back into new memory.
    ///
    /// # Errors
    /// If there is no memory, or the disk fails.
    pub fn read(&self) -> Result<SealedMemory, MemoryError> {
        self.check_length()?;
        let memory = FreshMemory::allocate(self.bytes)?;
        copy(self.file.as_fd(), self.bytes, |piece, place| memory.write_at(place, piece))?;
        memory.seal()
    }

    /// Copies the bytes from this place on.
    ///
    /// # Errors
    /// If they reach beyond the end, or the disk fails.
    pub fn read_at(&self, place: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        let end = place.saturating_add(into.len() as u64);
        if end > self.bytes {
            return Err(damaged(self.bytes, end));
        }
        match read_exact_at(self.file.as_fd(), place, into)? {
            read if read == into.len() => Ok(()),
            read => Err(damaged(self.bytes, place + read as u64)),
        }
    }

    fn check_length(&self) -> Result<(), MemoryError> {
        let status = fstat(&self.file).map_err(MemoryError::io("look at a spilled object"))?;
        let found = u64::try_from(status.st_size).unwrap_or(0);
        if found == self.bytes { Ok(()) } else { Err(damaged(self.bytes, found)) }
    }
}

/// Reads so many bytes of a file, in pieces.
fn copy(
    from: BorrowedFd<'_>,
    bytes: u64,
    mut write: impl FnMut(&[u8], u64) -> Result<(), MemoryError>,
) -> Result<(), MemoryError> {
    let mut piece = vec![0; PIECE.min(usize::try_from(bytes).unwrap_or(PIECE))];
    let mut place = 0;
    while place < bytes {
        let wanted = piece.len().min(usize::try_from(bytes - place).unwrap_or(PIECE));
        let read = read_exact_at(from, place, &mut piece[..wanted])?;
        if read == 0 {
            return Err(damaged(bytes, place));
        }
        write(&piece[..read], place)?;
        place += read as u64;
    }
    Ok(())
}

fn write_all_at(file: BorrowedFd<'_>, mut bytes: &[u8], mut place: u64) -> Result<(), Errno> {
    while !bytes.is_empty() {
        let written = retry_on_intr(|| pwrite(file, bytes, place))?;
        bytes = &bytes[written..];
        place += written as u64;
    }
    Ok(())
}

const fn damaged(stated: u64, found: u64) -> MemoryError {
    MemoryError::SpillDamaged { stated, found }
}

#[cfg(test)]
impl AsFd for SpillFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
