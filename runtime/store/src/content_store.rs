//! A directory of files that are named by the SHA-256 of their content.
//!
//! ```text
//! ab/cdef...        a file, named by its hash; changed last when it was used, about
//! partial/abcdef... a file that is arriving; removed when the store is opened
//! ```
//!
//! A file arrives in pieces, in order; each answer says where the next one begins, so a sender that lost its
//! link, or two that send the same file, need not begin anew. It gets its name only once its content has that
//! hash. A store that is opened again checks each file once before it hands it out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use cohabit_types::{Bytes, ContentHash, ContentPiece, PIECE_BYTES};

use crate::error::{ContentError, IoContext};
use crate::hash::{ContentHasher, hash_of_file};
use crate::manifest::{LARGEST_MANIFEST, Manifest};
use crate::stored_files::{StoredFile, StoredFiles};

/// Where files are while they arrive.
const PARTIAL: &str = "partial";

/// A use is written down when the last one that was is so long ago.
const USE_RESOLUTION: Duration = Duration::from_secs(3_600);

/// A file of which no piece has arrived for so long has been given up by its sender.
const PARTIAL_LIFETIME: Duration = Duration::from_secs(600);

/// What a store may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreLimits {
    /// Bytes of all files.
    pub bytes: Bytes,
    /// How many files.
    pub files: usize,
}

/// What a store is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreKind {
    /// A file that was stored is there after a power cut.
    Durable,
    /// It can be fetched again.
    Cache,
}

/// A directory of files by hash. All methods block.
#[derive(Debug)]
pub struct ContentStore {
    root: PathBuf,
    kind: StoreKind,
    limits: StoreLimits,
    state: Mutex<StoreState>,
}

#[derive(Debug, Default)]
struct StoreState {
    files: StoredFiles,
    partial: BTreeMap<ContentHash, PartialFile>,
}

/// A file that is arriving.
#[derive(Debug)]
struct PartialFile {
    file: File,
    hasher: ContentHasher,
    /// What all of it will have.
    size: u64,
    written: u64,
    touched_at: Instant,
}

impl ContentStore {
    /// Opens the store in this directory, and creates it if there is none. One process at a time may do so.
    ///
    /// # Errors
    /// When the directory cannot be created or read.
    pub fn open(root: &Path, kind: StoreKind, limits: StoreLimits) -> Result<ContentStore, ContentError> {
        let partial = root.join(PARTIAL);
        match fs::remove_dir_all(&partial) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).at("clear", &partial);
            }
            Ok(()) | Err(_) => create_directory(&partial)?,
        }
        let state = Mutex::new(StoreState { files: scan(root)?, partial: BTreeMap::new() });
        Ok(ContentStore { root: root.to_owned(), kind, limits, state })
    }

    /// Bytes of all files, and of those that are arriving.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        self.state().bytes()
    }

    /// Those of these files that are not stored. The others count as used.
    #[must_use]
    pub fn missing(&self, files: &[ContentHash]) -> Vec<ContentHash> {
        let mut state = self.state();
        files.iter().filter(|hash| !self.touch(&mut state, hash)).copied().collect()
    }

    /// Stores pieces; returns for each how many bytes of its file are there, which is where the next piece
    /// begins. A piece that begins elsewhere is passed over.
    ///
    /// # Errors
    /// [`ContentError::Full`] if a file has no room, [`ContentError::WrongContent`] if one does not have its
    /// hash, and those of the disk. Files that were complete before may be stored nevertheless.
    pub fn put(&self, pieces: &[ContentPiece]) -> Result<Vec<u64>, ContentError> {
        let mut state = self.state();
        let (mut written, mut complete) = (Vec::with_capacity(pieces.len()), Vec::new());
        let taken = pieces.iter().try_for_each(|piece| {
            let (bytes, is_complete) = self.put_piece(&mut state, piece)?;
            written.push(bytes);
            if is_complete {
                complete.push(piece.file);
            }
            Ok(())
        });
        let published = self.publish(&mut state, &complete);
        // What could not be stored has to be sent again.
        complete.iter().filter(|_| published.is_err()).for_each(|hash| self.discard(&mut state, hash));
        published.and(taken).map(|()| written)
    }

    /// How many bytes of the file are there now, and whether this piece completed it.
    fn put_piece(&self, state: &mut StoreState, piece: &ContentPiece) -> Result<(u64, bool), ContentError> {
        let ContentPiece { file: hash, size, offset, bytes } = piece;
        let is_inside = offset.checked_add(bytes.len() as u64).is_some_and(|end| end <= *size);
        if bytes.len() > PIECE_BYTES || !is_inside {
            return Err(ContentError::OutOfBounds(*hash));
        }
        if let Some(file) = state.files.get(hash) {
            return Ok((file.size, false));
        }
        if !state.partial.contains_key(hash) {
            let file = self.begin(state, *hash, *size)?;
            state.partial.insert(*hash, file);
        }
        let Some(partial) = state.partial.get_mut(hash) else { return Err(ContentError::Missing(*hash)) };
        if partial.size != *size {
            return Err(ContentError::OutOfBounds(*hash));
        }
        // Complete already: the same file twice in one batch.
        let was_complete = partial.written == partial.size && partial.size > 0;
        if partial.written != *offset || was_complete {
            return Ok((partial.written, false));
        }
        let path = self.root.join(PARTIAL).join(hash.to_string());
        if let Err(error) = partial.file.write_all(bytes) {
            self.discard(state, hash);
            return Err(error).at("write", &path);
        }
        partial.hasher.add(bytes);
        partial.written += bytes.len() as u64;
        partial.touched_at = Instant::now();
        if partial.written < partial.size {
            return Ok((partial.written, false));
        }
        if partial.hasher.clone().finish() != *hash {
            self.discard(state, hash);
            return Err(ContentError::WrongContent(*hash));
        }
        Ok((*size, true))
    }

    fn begin(&self, state: &StoreState, hash: ContentHash, size: u64) -> Result<PartialFile, ContentError> {
        let (used, limit, wanted) = (state.bytes(), self.limits.bytes, Bytes(size));
        let files = state.files.len() + state.partial.len();
        if used.0.saturating_add(size) > limit.0 || files >= self.limits.files {
            return Err(ContentError::Full { used, limit, wanted });
        }
        let path = self.root.join(PARTIAL).join(hash.to_string());
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o400).open(&path);
        let file = file.at("create", &path)?;
        let (hasher, touched_at) = (ContentHasher::default(), Instant::now());
        Ok(PartialFile { file, hasher, size, written: 0, touched_at })
    }

    /// Gives these files their names.
    fn publish(&self, state: &mut StoreState, complete: &[ContentHash]) -> Result<(), ContentError> {
        let mut folders = BTreeSet::new();
        for hash in complete {
            let Some(partial) = state.partial.get(hash) else { continue };
            let path = self.path(hash);
            let folder = path.parent().unwrap_or(&self.root).to_owned();
            if self.kind == StoreKind::Durable {
                partial.file.sync_all().at("flush", &path)?;
            }
            create_directory(&folder)?;
            folders.insert(folder);
        }
        for hash in complete {
            let Some(size) = state.partial.get(hash).map(|partial| partial.size) else { continue };
            let (from, to) = (self.root.join(PARTIAL).join(hash.to_string()), self.path(hash));
            fs::rename(&from, &to).at("store", &to)?;
            state.partial.remove(hash);
            let now = SystemTime::now();
            state.files.add(*hash, StoredFile { size, used_at: now, noted_at: now, is_verified: true });
        }
        if self.kind == StoreKind::Durable && !folders.is_empty() {
            // The directories themselves may be new.
            for folder in folders.iter().chain([&self.root]) {
                File::open(folder).and_then(|it| it.sync_all()).at("flush", folder)?;
            }
        }
        Ok(())
    }

    fn discard(&self, state: &mut StoreState, hash: &ContentHash) {
        state.partial.remove(hash);
        // What cannot be removed now is removed when the store is opened.
        let _ = fs::remove_file(self.root.join(PARTIAL).join(hash.to_string()));
    }

    /// Those of these files that are not stored, or whose content has changed, in their order.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn absent(&self, files: &[ContentHash]) -> Result<Vec<ContentHash>, ContentError> {
        let is_absent = |hash: &ContentHash| {
            let known = self.state().files.get(hash).map(|file| file.is_verified);
            match known {
                Some(true) => Ok(false),
                None => Ok(true),
                Some(false) => match self.open_file(hash) {
                    Ok(_) => Ok(false),
                    Err(ContentError::Missing(_) | ContentError::Damaged(_)) => Ok(true),
                    Err(error) => Err(error),
                },
            }
        };
        let mut absent = Vec::new();
        for hash in files {
            if is_absent(hash)? {
                absent.push(*hash);
            }
        }
        Ok(absent)
    }

    /// A stored file, whose content is known to be right.
    ///
    /// # Errors
    /// [`ContentError::Missing`] if it is not stored, [`ContentError::Damaged`] if its content has changed,
    /// after which it is no longer stored.
    pub fn open_file(&self, hash: &ContentHash) -> Result<File, ContentError> {
        let path = self.path(hash);
        let is_verified = {
            let mut state = self.state();
            if !self.touch(&mut state, hash) {
                return Err(ContentError::Missing(*hash));
            }
            state.files.get(hash).is_some_and(|file| file.is_verified)
        };
        let open = || match File::open(&path) {
            // Somebody removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.state().files.remove(hash);
                Err(ContentError::Missing(*hash))
            }
            opened => opened.at("open", &path),
        };
        let mut file = open()?;
        if is_verified {
            return Ok(file);
        }
        let (found, _) = hash_of_file(&mut file).at("read", &path)?;
        if found != *hash {
            self.remove(&mut self.state(), hash);
            return Err(ContentError::Damaged(*hash));
        }
        if let Some(file) = self.state().files.get_mut(hash) {
            file.is_verified = true;
        }
        open()
    }

    /// The piece of a file that begins at this offset; without bytes at its end.
    ///
    /// # Errors
    /// Those of [`ContentStore::open_file`].
    pub fn read(&self, hash: &ContentHash, offset: u64) -> Result<ContentPiece, ContentError> {
        let file = self.open_file(hash)?;
        let path = self.path(hash);
        let size = file.metadata().at("inspect", &path)?.len();
        let mut bytes = vec![0; size.saturating_sub(offset).min(PIECE_BYTES as u64) as usize];
        file.read_exact_at(&mut bytes, offset).at("read", &path)?;
        Ok(ContentPiece { file: *hash, size, offset, bytes })
    }

    /// The manifest with this hash.
    ///
    /// # Errors
    /// Those of [`ContentStore::open_file`], and [`ContentError::Manifest`] if the file is none.
    pub fn manifest(&self, hash: &ContentHash) -> Result<Manifest, ContentError> {
        let mut bytes = Vec::new();
        let file = self.open_file(hash)?;
        file.take(LARGEST_MANIFEST + 1).read_to_end(&mut bytes).at("read", &self.path(hash))?;
        Ok(Manifest::decode(&bytes)?)
    }

    /// Makes room for so many bytes and files: removes the least recently used, but none that is kept.
    /// Returns whether there is room now.
    pub fn make_room(&self, bytes: Bytes, files: usize, kept: &BTreeSet<ContentHash>) -> bool {
        let mut state = self.state();
        self.discard_idle(&mut state);
        let fits = |state: &StoreState| {
            let count = state.files.len() + state.partial.len();
            state.bytes().0.saturating_add(bytes.0) <= self.limits.bytes.0
                && count.saturating_add(files) <= self.limits.files
        };
        for (hash, _) in state.files.by_age(kept) {
            if fits(&state) {
                break;
            }
            self.remove(&mut state, &hash);
        }
        fits(&state)
    }

    /// Removes what was not used since then, but none that is kept.
    pub fn expire(&self, before: SystemTime, kept: &BTreeSet<ContentHash>) {
        let mut state = self.state();
        self.discard_idle(&mut state);
        for (hash, _) in state.files.by_age(kept).into_iter().take_while(|(_, file)| file.used_at < before) {
            self.remove(&mut state, &hash);
        }
    }

    fn discard_idle(&self, state: &mut StoreState) {
        let idle = state.partial.iter().filter(|(_, file)| file.touched_at.elapsed() > PARTIAL_LIFETIME);
        for hash in idle.map(|(hash, _)| *hash).collect::<Vec<_>>() {
            self.discard(state, &hash);
        }
    }

    fn remove(&self, state: &mut StoreState, hash: &ContentHash) {
        state.files.remove(hash);
        // A file that stays is found again when the store is opened.
        let _ = fs::remove_file(self.path(hash));
    }

    /// Notes that a file is used; returns whether it is stored.
    fn touch(&self, state: &mut StoreState, hash: &ContentHash) -> bool {
        let Some(file) = state.files.get_mut(hash) else { return false };
        let now = SystemTime::now();
        file.used_at = file.used_at.max(now);
        if now.duration_since(file.noted_at).is_ok_and(|age| age > USE_RESOLUTION) {
            file.noted_at = now;
            // If it is lost, the file only seems older after a restart.
            let _ = File::open(self.path(hash)).and_then(|file| file.set_modified(now));
        }
        true
    }

    fn path(&self, hash: &ContentHash) -> PathBuf {
        let name = hash.to_string();
        self.root.join(&name[..2]).join(&name[2..])
    }

    fn state(&self) -> MutexGuard<'_, StoreState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoreState {
    fn bytes(&self) -> Bytes {
        let arriving = self.partial.values().map(|file| file.size);
        Bytes(arriving.fold(self.files.bytes().0, u64::saturating_add))
    }
}

fn create_directory(path: &Path) -> Result<(), ContentError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).at("create", path)
}

/// The files that an earlier process stored.
fn scan(root: &Path) -> Result<StoredFiles, ContentError> {
    let mut files = StoredFiles::default();
    for folder in fs::read_dir(root).at("read", root)? {
        let folder = folder.at("read", root)?;
        let prefix = folder.file_name();
        let Some(prefix) = prefix.to_str().filter(|name| name.len() == 2) else { continue };
        for entry in fs::read_dir(folder.path()).at("read", &folder.path())? {
            let entry = entry.at("read", &folder.path())?;
            let rest = entry.file_name();
            let hash = rest.to_str().and_then(|rest| format!("{prefix}{rest}").parse().ok());
            let (Some(hash), Ok(found)) = (hash, entry.metadata()) else { continue };
            let used_at = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            let file = StoredFile { size: found.len(), used_at, noted_at: used_at, is_verified: false };
            files.add(hash, file);
        }
    }
    Ok(files)
}

#[cfg(test)]
#[path = "tests/content_store.rs"]
mod tests;
