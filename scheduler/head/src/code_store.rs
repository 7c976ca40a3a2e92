//! The stored code of users: what the snapshots that jobs run in consist of.
//!
//! Each user has a store of their own. A common one would tell one user what another has stored, and whoever
//! learned the hash of a manifest could have a job run with the code of somebody else.
//!
//! ```text
//! code/<SHA-256 of the name>/user    the name of the user
//! code/<SHA-256 of the name>/...     their files, see `cohabit_store::ContentStore`
//! ```
//!
//! A store that is full gives up what was not used for the longest time, but nothing that a job which has not
//! ended may still need, and nothing that a submission under way names: that is pinned.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use cohabit_store::{ContentError, ContentStore, Manifest, StoreKind, StoreLimits, hash_of};
use cohabit_types::{Bytes, CodeSnapshot, ContentHash, ContentPiece, Refusal, RefusalCode};

use crate::RequestLimits;
use crate::state_dir::file_system::space;

/// Files that one user may store.
const MOST_FILES: usize = 200_000;

/// What stays free on the disk of the head, if it is ten times as large.
const LEAST_FREE: Bytes = Bytes(1 << 30);

/// The stored code of all users.
#[derive(Debug)]
pub(crate) struct CodeStores {
    root: PathBuf,
    /// The most that a user may store.
    user_bytes: Bytes,
    users: Mutex<BTreeMap<String, Arc<CodeStore>>>,
}

/// The stored code of one user.
#[derive(Debug)]
pub(crate) struct CodeStore {
    root: PathBuf,
    content: ContentStore,
    /// How many submissions under way name a manifest.
    pins: Mutex<BTreeMap<ContentHash, usize>>,
    /// The manifest that was read last.
    latest: Mutex<Option<(ContentHash, Arc<Manifest>)>>,
    /// Held while files are given up, and while a snapshot is pinned.
    pub(crate) turn: tokio::sync::Mutex<()>,
}

/// Keeps the files of a snapshot while it exists.
#[derive(Debug)]
pub(crate) struct CodePin {
    store: Arc<CodeStore>,
    manifest: ContentHash,
}

impl CodeStores {
    pub(crate) fn new(root: PathBuf, limits: &RequestLimits) -> CodeStores {
        CodeStores { root, user_bytes: limits.user_code, users: Mutex::default() }
    }

    /// The store of this user, made if there is none. Blocks.
    pub(crate) fn of(&self, user: &str) -> Result<Arc<CodeStore>, ContentError> {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = users.get(user) {
            return Ok(Arc::clone(store));
        }
        let folder = self.root.join(hash_of(user.as_bytes()).to_string());
        let limits = StoreLimits { bytes: self.user_bytes, files: MOST_FILES };
        let content = ContentStore::open(&folder, StoreKind::Durable, limits)?;
        let name = folder.join("user");
        let named = fs::write(&name, format!("{user}\n"));
        named.map_err(|source| ContentError::Io { action: "write", path: name, source })?;
        let store = Arc::new(CodeStore {
            root: folder,
            content,
            pins: Mutex::default(),
            latest: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        });
        users.insert(user.to_owned(), Arc::clone(&store));
        Ok(store)
    }

    /// Everybody who has stored something. Blocks.
    pub(crate) fn users(&self) -> Vec<String> {
        let folders = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let name = |folder: fs::DirEntry| fs::read_to_string(folder.path().join("user")).ok();
        folders.filter_map(name).map(|name| name.trim_end_matches('\n').to_owned()).collect()
    }
}

impl CodeStore {
    /// See [`ContentStore::missing`].
    pub(crate) fn missing(&self, files: &[ContentHash]) -> Vec<ContentHash> {
        self.content.missing(files)
    }

    /// See [`ContentStore::put`]. Leaves room on the disk for the journal.
    pub(crate) fn put(&self, pieces: &[ContentPiece]) -> Result<Vec<u64>, ContentError> {
        let full = |source| ContentError::Io { action: "store code in", path: self.root.clone(), source };
        let (free, size) = space(&self.root).map_err(full)?;
        match free < LEAST_FREE.min(Bytes(size.0 / 10)) {
            true => Err(full(std::io::ErrorKind::StorageFull.into())),
            false => self.content.put(pieces),
        }
    }

    /// Notes that a submission names this snapshot, for as long as the pin exists.
    pub(crate) fn pin(self: &Arc<CodeStore>, manifest: ContentHash) -> CodePin {
        *self.pins().entry(manifest).or_default() += 1;
        CodePin { store: Arc::clone(self), manifest }
    }

    /// Refuses a snapshot that is not stored, or is not what its job says. Blocks.
    pub(crate) fn check(&self, code: &CodeSnapshot, limits: &RequestLimits) -> Result<(), Refusal> {
        let manifest = self.manifest(&code.manifest).map_err(|error| refusal(&error))?;
        let (files, bytes) = (manifest.files().len() as u64, manifest.bytes());
        if (files, bytes) != (code.files, code.bytes) {
            let message = "the code snapshot does not have the files that the job says: report this as a bug";
            return Err(Refusal::new(RefusalCode::Invalid, message));
        }
        if bytes > limits.snapshot {
            let limit = limits.snapshot;
            return Err(Refusal::new(
                RefusalCode::Invalid,
                format!(
                    "the code snapshot of '{}' has {bytes} in {files} files, and at most {limit} are allowed \
                     (max-snapshot-size): name what the job does not need in .cohabitignore, and pass data by \
                     absolute path",
                    code.folder
                ),
            ));
        }
        // The manifest may be known from before, and no longer stored.
        let stored: Vec<ContentHash> =
            manifest.stored().map(|(hash, _)| hash).chain([code.manifest]).collect();
        match self.content.missing(&stored).first() {
            None => Ok(()),
            Some(hash) => Err(refusal(&ContentError::Missing(*hash))),
        }
    }

    /// A piece of the manifest of a snapshot, or of a file that it names. Blocks.
    pub(crate) fn read(
        &self,
        manifest: &ContentHash,
        file: &ContentHash,
        offset: u64,
    ) -> Result<ContentPiece, ContentError> {
        let is_part = file == manifest || self.manifest(manifest)?.stored().any(|(hash, _)| hash == *file);
        match is_part {
            true => self.content.read(file, offset),
            false => Err(ContentError::Missing(*file)),
        }
    }

    /// The stored manifest. Blocks.
    fn manifest(&self, hash: &ContentHash) -> Result<Arc<Manifest>, ContentError> {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, manifest)) = latest.as_ref().filter(|(it, _)| it == hash) {
            return Ok(Arc::clone(manifest));
        }
        let manifest = Arc::new(self.content.manifest(hash)?);
        *latest = Some((*hash, Arc::clone(&manifest)));
        Ok(manifest)
    }

    /// Snapshots that submissions under way name.
    pub(crate) fn pinned(&self) -> BTreeSet<ContentHash> {
        self.pins().keys().copied().collect()
    }

    /// Gives up files until so many bytes and files have room, but none of these snapshots; returns whether
    /// there is room. Blocks.
    ///
    /// # Errors
    /// When it cannot be read what has to stay; nothing is given up then.
    pub(crate) fn make_room(
        &self,
        bytes: Bytes,
        files: usize,
        snapshots: &BTreeSet<ContentHash>,
    ) -> Result<bool, ContentError> {
        Ok(self.content.make_room(bytes, files, &self.files_of(snapshots)?))
    }

    /// Gives up what nobody has used since then, but no file of these snapshots. Blocks.
    ///
    /// # Errors
    /// Those of [`CodeStore::make_room`].
    pub(crate) fn expire(
        &self,
        before: SystemTime,
        snapshots: &BTreeSet<ContentHash>,
    ) -> Result<(), ContentError> {
        self.content.expire(before, &self.files_of(snapshots)?);
        Ok(())
    }

    /// These manifests, and what they name. One that is gone has nothing left to keep; one that only cannot
    /// be read now has.
    fn files_of(&self, snapshots: &BTreeSet<ContentHash>) -> Result<BTreeSet<ContentHash>, ContentError> {
        let mut files = snapshots.clone();
        for hash in snapshots {
            match self.manifest(hash) {
                Ok(manifest) => files.extend(manifest.stored().map(|(hash, _)| hash)),
                Err(ContentError::Missing(_) | ContentError::Damaged(_) | ContentError::Manifest(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(files)
    }

    fn pins(&self) -> MutexGuard<'_, BTreeMap<ContentHash, usize>> {
        self.pins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CodePin {
    fn drop(&mut self) {
        let mut pins = self.store.pins();
        if let Some(count) = pins.get_mut(&self.manifest) {
            *count -= 1;
            if *count == 0 {
                pins.remove(&self.manifest);
            }
        }
    }
}

/// What a client, or a worker, hears of it.
pub(crate) fn refusal(error: &ContentError) -> Refusal {
    let (code, remedy) = match error {
        ContentError::Io { .. } => (RefusalCode::StorageFailed, ": an admin has to look at the head's disk"),
        ContentError::WrongContent(_) | ContentError::OutOfBounds(_) | ContentError::Manifest(_) => {
            (RefusalCode::Invalid, "")
        }
        ContentError::Missing(_) | ContentError::Damaged(_) => {
            (RefusalCode::NotFound, ", and with it the code snapshot is not complete: submit the job again")
        }
        ContentError::Full { .. } => (
            RefusalCode::NotAllowed,
            " (max-user-code), for jobs that have not ended need the rest: wait for jobs, or name what they do not \
             need in .cohabitignore",
        ),
    };
    Refusal::new(code, format!("{error}{remedy}"))
}

#[cfg(test)]
mod tests {
    use cohabit_store::{FileContent, FileSelection, ManifestFile};

    use super::*;

    fn stores(folder: &std::path::Path, user_code: Bytes) -> CodeStores {
        CodeStores::new(folder.join("code"), &RequestLimits { user_code, ..RequestLimits::default() })
    }

    fn whole(content: &[u8]) -> ContentPiece {
        let size = content.len() as u64;
        ContentPiece { file: hash_of(content), size, offset: 0, bytes: content.into() }
    }

    /// A snapshot of one file with this content, and the manifest as it is stored.
    fn snapshot(content: &[u8]) -> (CodeSnapshot, Vec<u8>) {
        let stored =
            FileContent::Stored { hash: hash_of(content), size: content.len() as u64, is_executable: false };
        let file = ManifestFile { path: "train.py".into(), content: stored };
        let manifest = Manifest::new(FileSelection::Git, vec![file]).unwrap();
        let (hash, bytes) = manifest.encode();
        let size = manifest.bytes();
        (CodeSnapshot { manifest: hash, folder: "/home/ada".into(), files: 1, bytes: size }, bytes)
    }

    #[test]
    fn users_have_stores_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let stores = stores(folder.path(), Bytes(1 << 20));
        let (code, manifest) = snapshot(b"print(1)");
        let ada = stores.of("ada").unwrap();
        ada.put(&[whole(b"print(1)"), whole(&manifest)]).unwrap();
        ada.check(&code, &RequestLimits::default()).unwrap();
        let refused = stores.of("../mallory").unwrap().check(&code, &RequestLimits::default()).unwrap_err();
        assert_eq!(refused.code, RefusalCode::NotFound, "{refused}");
        let mut users = stores.users();
        users.sort();
        assert_eq!(users, ["../mallory", "ada"]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_snapshot_is_what_its_job_says_and_all_of_it_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let store = stores(folder.path(), Bytes(1 << 20)).of("ada").unwrap();
        let (code, manifest) = snapshot(b"print(1)");
        let limits = RequestLimits::default();
        store.put(&[whole(&manifest)]).unwrap();
        let refused = store.check(&code, &limits).unwrap_err();
        assert!(refused.message.contains("submit the job again"), "{refused}");
        store.put(&[whole(b"print(1)")]).unwrap();
        store.check(&code, &limits).unwrap();
        let other = CodeSnapshot { bytes: Bytes(1), ..code.clone() };
        assert_eq!(store.check(&other, &limits).unwrap_err().code, RefusalCode::Invalid);
        let small = RequestLimits { snapshot: Bytes(7), ..limits };
        let refused = store.check(&code, &small).unwrap_err();
        assert!(refused.message.contains("max-snapshot-size"), "{refused}");
    }

    #[test]
    fn only_what_the_manifest_names_is_read_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = stores(folder.path(), Bytes(1 << 20)).of("ada").unwrap();
        let (code, manifest) = snapshot(b"print(1)");
        store.put(&[whole(b"print(1)"), whole(b"secret"), whole(&manifest)]).unwrap();
        let read = |file| store.read(&code.manifest, &file, 0).map(|piece| piece.bytes);
        assert_eq!(read(code.manifest).unwrap(), manifest);
        assert_eq!(read(hash_of(b"print(1)")).unwrap(), b"print(1)");
        assert!(matches!(read(hash_of(b"secret")), Err(ContentError::Missing(_))));
    }

    #[test]
    fn what_is_pinned_or_in_use_is_not_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let store = stores(folder.path(), Bytes(1 << 10)).of("ada").unwrap();
        let (one, two) = (snapshot(&[1; 100]), snapshot(&[2; 100]));
        for (content, manifest) in [([1; 100], &one.1), ([2; 100], &two.1)] {
            store.put(&[whole(&content), whole(manifest)]).unwrap();
        }
        let pin = store.pin(one.0.manifest);
        assert!(!store.make_room(Bytes(1 << 10), 1, &store.pinned()).unwrap(), "the first is pinned");
        let limits = RequestLimits::default();
        store.check(&one.0, &limits).unwrap();
        store.check(&two.0, &limits).unwrap_err();
        drop(pin);
        assert!(store.pinned().is_empty());
        assert!(store.make_room(Bytes(1 << 10), 1, &store.pinned()).unwrap());
        store.check(&one.0, &limits).unwrap_err();
    }
}
