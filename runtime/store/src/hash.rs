//! SHA-256 of bytes, files and streams.

use std::fs::File;
use std::io::{self, Read};

use cohabit_types::ContentHash;
use ring::digest::{Context, SHA256};

/// How much of a file is read at once, in bytes.
const CHUNK: usize = 128 << 10;

/// The hash of content that arrives in parts. It is fast in every build, because users launch large programs
/// from builds without optimisations.
#[derive(Clone)]
pub struct ContentHasher(Context);

impl Default for ContentHasher {
    fn default() -> ContentHasher {
        ContentHasher(Context::new(&SHA256))
    }
}

impl std::fmt::Debug for ContentHasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ContentHasher")
    }
}

impl ContentHasher {
    /// Adds the next part.
    pub fn add(&mut self, part: &[u8]) {
        self.0.update(part);
    }

    /// The hash of all parts.
    #[must_use]
    pub fn finish(self) -> ContentHash {
        let mut hash = [0; 32];
        hash.copy_from_slice(self.0.finish().as_ref());
        ContentHash(hash)
    }
}

/// The hash of these bytes.
#[must_use]
pub fn hash_of(bytes: &[u8]) -> ContentHash {
    let mut hasher = ContentHasher::default();
    hasher.add(bytes);
    hasher.finish()
}

/// The hash of a file from its present position on, and how many bytes that was. Blocks.
///
/// # Errors
/// When it cannot be read.
pub fn hash_of_file(file: &mut File) -> io::Result<(ContentHash, u64)> {
    let (mut hasher, mut size, mut chunk) = (ContentHasher::default(), 0, vec![0; CHUNK]);
    loop {
        match file.read(&mut chunk) {
            Ok(0) => return Ok((hasher.finish(), size)),
            Ok(read) => {
                hasher.add(&chunk[..read]);
                size += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// The examples of FIPS 180-4.
    #[test]
    fn hashes_are_those_of_the_standard() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(hash_of(b"abc").to_string(), abc);
        assert_eq!(hash_of(b"").to_string(), empty);
        let mut file = tempfile::tempfile().unwrap();
        assert_eq!(hash_of_file(&mut file).unwrap(), (hash_of(b""), 0));
        file.write_all(&vec![7; 3 * CHUNK + 1]).unwrap();
        io::Seek::rewind(&mut file).unwrap();
        let all = vec![7; 3 * CHUNK + 1];
        assert_eq!(hash_of_file(&mut file).unwrap(), (hash_of(&all), all.len() as u64));
    }
}
