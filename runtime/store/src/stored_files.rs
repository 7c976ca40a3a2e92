//! Which files are stored, and which of them were used least recently.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use cohabit_types::{Bytes, ContentHash};

/// The files of a store.
#[derive(Debug, Default)]
pub(crate) struct StoredFiles {
    files: BTreeMap<ContentHash, StoredFile>,
    bytes: u64,
}

/// A stored file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoredFile {
    pub(crate) size: u64,
    pub(crate) used_at: SystemTime,
    /// The last use that was written down.
    pub(crate) noted_at: SystemTime,
    /// Whether this process knows that its content is right.
    pub(crate) is_verified: bool,
}

impl StoredFiles {
    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    pub(crate) const fn bytes(&self) -> Bytes {
        Bytes(self.bytes)
    }

    pub(crate) fn get(&self, hash: &ContentHash) -> Option<&StoredFile> {
        self.files.get(hash)
    }

    pub(crate) fn get_mut(&mut self, hash: &ContentHash) -> Option<&mut StoredFile> {
        self.files.get_mut(hash)
    }

    pub(crate) fn add(&mut self, hash: ContentHash, file: StoredFile) {
        self.remove(&hash);
        self.bytes += file.size;
        self.files.insert(hash, file);
    }

    pub(crate) fn remove(&mut self, hash: &ContentHash) {
        if let Some(file) = self.files.remove(hash) {
            self.bytes -= file.size;
        }
    }

    /// All but those that are kept, the least recently used first.
    pub(crate) fn by_age(&self, kept: &BTreeSet<ContentHash>) -> Vec<(ContentHash, StoredFile)> {
        let others = self.files.iter().filter(|(hash, _)| !kept.contains(hash));
        let mut others: Vec<_> = others.map(|(hash, file)| (*hash, *file)).collect();
        others.sort_by_key(|(hash, file)| (file.used_at, *hash));
        others
    }
}
