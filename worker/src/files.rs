//! Small files that are whole or absent, even after a power cut, and errors that name the file.
//!
//! A file is written beside its place, flushed, and renamed into it; its folder is flushed too. All folders
//! and files made here are for the daemon's own user alone; where ranks run as other users, these may pass
//! through the folders on their way to what is theirs.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Trouble with a file or folder of ours.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} '{}': {source}", path.display())]
pub struct FileError {
    action: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl FileError {
    /// Whether the machine is at fault, and not what was asked for.
    pub(crate) fn is_of_machine(&self) -> bool {
        is_of_machine(&self.source)
    }
}

/// Whether it says that the machine has no more disk, files, processes or memory, or that its disk fails.
pub(crate) fn is_of_machine(error: &io::Error) -> bool {
    let exhausted =
        [Errno::ENOSPC, Errno::EDQUOT, Errno::EMFILE, Errno::ENFILE, Errno::EAGAIN, Errno::ENOMEM];
    let broken = [Errno::EIO, Errno::EROFS];
    error.raw_os_error().is_some_and(|code| exhausted.iter().chain(&broken).any(|it| *it as i32 == code))
}

/// Adds to an error what was done with which file.
pub(crate) trait At<T> {
    fn at(self, action: &'static str, path: &Path) -> Result<T, FileError>;
}

impl<T, E: Into<io::Error>> At<T> for Result<T, E> {
    fn at(self, action: &'static str, path: &Path) -> Result<T, FileError> {
        self.map_err(|error| FileError { action, path: path.to_owned(), source: error.into() })
    }
}

/// Makes a folder and those above it, unless it is there.
pub(crate) fn make_folder(path: &Path) -> Result<(), FileError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).at("create the folder", path)
}

/// Lets other users pass through this folder, but not see what is in it.
pub(crate) fn open_way(path: &Path) -> Result<(), FileError> {
    std::fs::set_permissions(path, Permissions::from_mode(0o711)).at("let users pass through", path)
}

/// Puts this content in the place of the file's old content, at once and durably.
pub(crate) fn write_json<T: Serialize>(path: &Path, content: &T) -> Result<(), FileError> {
    replace(path, content, File::sync_all)?;
    sync_folder_of(path)
}

/// As [`write_json`], for what means nothing any more after a power cut.
pub(crate) fn write_json_for_this_boot<T: Serialize>(path: &Path, content: &T) -> Result<(), FileError> {
    replace(path, content, |_| Ok(()))
}

fn replace<T: Serialize>(
    path: &Path,
    content: &T,
    flush: impl FnOnce(&File) -> io::Result<()>,
) -> Result<(), FileError> {
    let mut text = serde_json::to_vec(content).at("encode", path)?;
    text.push(b'\n');
    let fresh = path.with_extension("new");
    let mut file = create(&fresh, 0o600)?;
    file.write_all(&text).at("write", &fresh)?;
    flush(&file).at("flush", &fresh)?;
    std::fs::rename(&fresh, path).at("put in place", path)
}

/// The content of the file, if it is there.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, FileError> {
    match std::fs::read(path) {
        Ok(text) => serde_json::from_slice(&text).map(Some).at("understand", path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).at("read", path),
    }
}

/// An empty file with these permissions, in place of what was there.
pub(crate) fn create(path: &Path, mode: u32) -> Result<File, FileError> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(mode);
    options.open(path).at("create", path)
}

/// The file, to be written at its end; made, if it is not there.
pub(crate) fn append_to(path: &Path) -> Result<File, FileError> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path).at("create", path)
}

/// Makes a file durable that was written without that, if it is there.
pub(crate) fn flush_if_there(path: &Path) -> Result<(), FileError> {
    match File::open(path) {
        Ok(file) => {
            file.sync_all().at("flush", path)?;
            sync_folder_of(path)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).at("open", path),
    }
}

/// Makes new, renamed and removed names durable.
fn sync_folder_of(path: &Path) -> Result<(), FileError> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    File::open(folder).and_then(|folder| folder.sync_all()).at("flush the folder", folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_to_blame_for_what_it_lacks() {
        let of_machine = |errno: Errno| is_of_machine(&io::Error::from_raw_os_error(errno as i32));
        assert!([Errno::ENOSPC, Errno::EMFILE, Errno::EAGAIN, Errno::EROFS].into_iter().all(of_machine));
        assert!(![Errno::ENOENT, Errno::EACCES, Errno::ENOEXEC].into_iter().any(of_machine));
        assert!(!is_of_machine(&io::Error::other("something else")));
    }
}
