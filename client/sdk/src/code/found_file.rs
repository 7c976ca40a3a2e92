//! Looks at the files that were listed: what each is, and how large.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cohabit_store::{FileContent, ManifestFile, hash_of_file};

use super::error::CodeError;

/// A file of a folder, which has not been read yet.
#[derive(Debug, Clone)]
pub(super) struct FoundFile {
    /// Below the folder.
    pub(super) path: String,
    pub(super) kind: FileKind,
}

/// What a file is.
#[derive(Debug, Clone)]
pub(super) enum FileKind {
    /// A regular file.
    Regular {
        /// In bytes.
        size: u64,
        is_executable: bool,
    },
    /// A symbolic link to this target.
    Link(String),
}

impl FoundFile {
    /// In bytes; a link has none.
    pub(super) fn size(&self) -> u64 {
        match self.kind {
            FileKind::Regular { size, .. } => size,
            FileKind::Link(_) => 0,
        }
    }

    /// Reads and hashes it; none if it is gone by now. Blocks.
    pub(super) fn read(self, root: &Path) -> Result<Option<ManifestFile>, CodeError> {
        let FoundFile { path, kind } = self;
        let content = match kind {
            FileKind::Link(target) => FileContent::Link(target),
            FileKind::Regular { is_executable, .. } => {
                let file = root.join(&path);
                match File::open(&file).and_then(|mut file| hash_of_file(&mut file)) {
                    Ok((hash, size)) => FileContent::Stored { hash, size, is_executable },
                    Err(error) if is_gone(&error) => return Ok(None),
                    Err(source) => return Err(CodeError::Unreadable { file, source }),
                }
            }
        };
        Ok(Some(ManifestFile { path, content }))
    }
}

/// Those of the listed files that exist and are regular files or symbolic links. Blocks.
pub(super) fn inspect(root: &Path, listed: &[PathBuf]) -> Result<Vec<FoundFile>, CodeError> {
    let mut directories = Directories { root, known: BTreeMap::new() };
    let mut found = Vec::with_capacity(listed.len());
    for path in listed {
        // Git still lists what lies behind a link that replaced a directory.
        if path.parent().is_none_or(|above| directories.has(above)) {
            found.extend(inspect_file(root, path)?);
        }
    }
    Ok(found)
}

fn inspect_file(root: &Path, path: &Path) -> Result<Option<FoundFile>, CodeError> {
    let file = root.join(path);
    let metadata = match fs::symlink_metadata(&file) {
        Ok(metadata) => metadata,
        Err(error) if is_gone(&error) => return Ok(None),
        Err(source) => return Err(CodeError::Unreadable { file, source }),
    };
    let not_utf8 = |what| CodeError::NotUtf8 { what, file: path.to_owned() };
    let name = || path.to_str().map(str::to_owned).ok_or_else(|| not_utf8("name"));
    if metadata.is_symlink() {
        let target = fs::read_link(&file).map_err(|source| CodeError::Unreadable { file, source })?;
        let target = target.into_os_string().into_string().map_err(|_| not_utf8("target"))?;
        return Ok(Some(FoundFile { path: name()?, kind: FileKind::Link(target) }));
    }
    if !metadata.is_file() {
        return Ok(None);
    }
    let kind = FileKind::Regular { size: metadata.len(), is_executable: is_executable(&metadata) };
    Ok(Some(FoundFile { path: name()?, kind }))
}

/// As git decides it.
fn is_executable(metadata: &Metadata) -> bool {
    metadata.permissions().mode() & 0o100 != 0
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Which directories below a folder are directories, not links to some.
struct Directories<'a> {
    root: &'a Path,
    known: BTreeMap<PathBuf, bool>,
}

impl Directories<'_> {
    fn has(&mut self, directory: &Path) -> bool {
        let Some(above) = directory.parent() else { return true };
        if let Some(known) = self.known.get(directory) {
            return *known;
        }
        let full = self.root.join(directory);
        let is_there = self.has(above) && full.symlink_metadata().is_ok_and(|found| found.is_dir());
        self.known.insert(directory.to_owned(), is_there);
        is_there
    }
}
