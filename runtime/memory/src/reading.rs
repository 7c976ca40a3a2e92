//! Reads files at places.

use std::os::fd::BorrowedFd;

use rustix::io::{pread, retry_on_intr};

use crate::errors::MemoryError;

/// Reads from this place on until the buffer is full or the file ends. Returns how much was read.
pub(crate) fn read_exact_at(file: BorrowedFd<'_>, place: u64, into: &mut [u8]) -> Result<usize, MemoryError> {
    let mut read = 0;
    while read < into.len() {
        let more = retry_on_intr(|| pread(file, &mut into[read..], place + read as u64));
        match more.map_err(MemoryError::io("read an object to copy it"))? {
            0 => break,
            more => read += more,
        }
    }
    Ok(read)
}
