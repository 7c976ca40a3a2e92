//! A reader that knows the digest of what was read.

use std::io::{self, Read};

use cohabit_store::ContentHasher;
use cohabit_types::ContentHash;

/// Counts and hashes what is read through it.
pub(super) struct HashingReader<R> {
    inner: R,
    hasher: ContentHasher,
    size: u64,
}

impl<R> HashingReader<R> {
    pub(super) fn new(inner: R) -> HashingReader<R> {
        HashingReader { inner, hasher: ContentHasher::default(), size: 0 }
    }

    /// How many bytes were read, and their SHA-256.
    pub(super) fn finish(self) -> (u64, ContentHash) {
        (self.size, self.hasher.finish())
    }
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.hasher.add(&buffer[..read]);
        self.size += read as u64;
        Ok(read)
    }
}
