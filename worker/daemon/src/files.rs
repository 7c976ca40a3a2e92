//! Small files that are whole or absent, even after a power cut, and errors that name the file.
//!
//! A file is written beside its place, flushed, and renamed into it; its folder is flushed too. All folders
//! and files made here are for the daemon's own user alone; where ranks run as other users, these may pass
//! through the folders on their way to what is theirs. Jobs may have put anything in the place of a file: a
//! link is never followed, a pipe never waited for, and a file without end never read to its end.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// No file of ours is longer, in bytes: an order fits into a message.
const MAX_FILE_SIZE: u64 = 16 << 20;

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
pub(crate) trait FileContext<T> {
    fn at(self, action: &'static str, path: &Path) -> Result<T, FileError>;
}

impl<T, E: Into<io::Error>> FileContext<T> for Result<T, E> {
    fn at(self, action: &'static str, path: &Path) -> Result<T, FileError> {
        self.map_err(|error| FileError { action, path: path.to_owned(), source: error.into() })
    }
}

/// Makes a folder and those above it, unless it is there.
pub(crate) fn create_directory(path: &Path) -> Result<(), FileError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).at("create the folder", path)
}

/// Lets other users pass through this folder, but not see what is in it.
pub(crate) fn allow_traversal(path: &Path) -> Result<(), FileError> {
    fs::set_permissions(path, Permissions::from_mode(0o711)).at("let users pass through", path)
}

/// Puts this content in the place of the file's old content, at once and durably.
pub(crate) fn write_json<T: Serialize>(path: &Path, content: &T) -> Result<(), FileError> {
    replace(path, content, File::sync_all)?;
    sync_parent_directory(path)
}

/// As [`write_json`], for what means nothing any more after a power cut.
pub(crate) fn write_json_for_this_boot<T: Serialize>(path: &Path, content: &T) -> Result<(), FileError> {
    replace(path, content, |_| Ok(()))
}

/// Puts this content in a file of which nobody has to make sense until it is known to be whole.
pub(crate) fn write_json_in_place<T: Serialize>(path: &Path, content: &T) -> Result<(), FileError> {
    write_new(path, content).map(drop)
}

fn replace<T: Serialize>(
    path: &Path,
    content: &T,
    flush: impl FnOnce(&File) -> io::Result<()>,
) -> Result<(), FileError> {
    let fresh = path.with_extension("new");
    let file = write_new(&fresh, content)?;
    flush(&file).at("flush", &fresh)?;
    fs::rename(&fresh, path).at("put in place", path)
}

fn write_new<T: Serialize>(path: &Path, content: &T) -> Result<File, FileError> {
    let mut text = serde_json::to_vec(content).at("encode", path)?;
    text.push(b'\n');
    let mut file = create(path, 0o600)?;
    file.write_all(&text).at("write", path)?;
    Ok(file)
}

/// The content of the file, if it is there.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, FileError> {
    match read(path) {
        Ok(text) => serde_json::from_slice(&text).map(Some).at("understand", path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).at("read", path),
    }
}

/// All that is in a file of ours.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let length = file.metadata()?.len().min(MAX_FILE_SIZE);
    // With room for one more, the end is found without room being made.
    let mut bytes = Vec::with_capacity(length as usize + 1);
    file.take(MAX_FILE_SIZE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_SIZE {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is too long to be one of ours"));
    }
    Ok(bytes)
}

/// Opens a file for reading, if it is one: no link, no folder, no pipe.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let careful = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(careful.bits()).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    Ok(file)
}

/// Opens a folder, if it is one and no link to one.
pub(crate) fn open_directory(path: &Path) -> io::Result<File> {
    let careful = OFlag::O_NOFOLLOW | OFlag::O_DIRECTORY;
    OpenOptions::new().read(true).custom_flags(careful.bits()).open(path)
}

/// The path of a name in an open folder: it leads there, whatever happens to the folder's own path, and may
/// be as long as it likes.
pub(crate) fn within(folder: &File, name: impl AsRef<Path>) -> PathBuf {
    Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name)
}

/// An empty file with these permissions, in place of what was there.
pub(crate) fn create(path: &Path, mode: u32) -> Result<File, FileError> {
    let make = || OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let made = match make() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            remove_if_exists(path).at("replace", path)?;
            make()
        }
        made => made,
    };
    made.at("create", path)
}

/// Removes the file, so that another may take its name.
pub(crate) fn remove_if_exists(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Removes a folder and all that is in it; what links lead to stays. Takes no more memory and no more open
/// files for a million folders within each other than for one.
pub(crate) fn remove_directory(path: &Path) -> io::Result<()> {
    let root = open_directory(path)?;
    let mut moved = 0_u64;
    // Folders are emptied one at a time: those in them move up to the root, and wait there.
    while let Some(inner) = remove_files(&root, |inner| Ok(Some(inner.to_owned())))? {
        let folder = open_directory(&within(&root, &inner))?;
        remove_files::<()>(&folder, |deeper| {
            while let Err(error) = fs::rename(within(&folder, deeper), within(&root, format!("{moved}"))) {
                if !matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotADirectory) {
                    return Err(error);
                }
                moved += 1;
            }
            Ok(None)
        })?;
        fs::remove_dir(within(&root, &inner))?;
    }
    fs::remove_dir(path)
}

/// Removes all files of a folder, and says of each folder in it that it is there, until that gives something.
fn remove_files<T>(
    folder: &File,
    mut found: impl FnMut(&std::ffi::OsStr) -> io::Result<Option<T>>,
) -> io::Result<Option<T>> {
    for entry in fs::read_dir(within(folder, ""))? {
        let entry = entry?;
        if !entry.file_type()?.is_dir() {
            fs::remove_file(within(folder, entry.file_name()))?;
        } else if let Some(given) = found(&entry.file_name())? {
            return Ok(Some(given));
        }
    }
    Ok(None)
}

/// The file, to be written at its end; made, if it is not there.
pub(crate) fn append_to(path: &Path) -> Result<File, FileError> {
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600).custom_flags(OFlag::O_NOFOLLOW.bits());
    options.open(path).at("create", path)
}

/// Makes a file durable that was written without that, if it is there.
pub(crate) fn sync_if_exists(path: &Path) -> Result<(), FileError> {
    match open(path) {
        Ok(file) => {
            file.sync_all().at("flush", path)?;
            sync_parent_directory(path)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).at("open", path),
    }
}

/// Makes new, renamed and removed names durable.
fn sync_parent_directory(path: &Path) -> Result<(), FileError> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    File::open(folder).and_then(|folder| folder.sync_all()).at("flush the folder", folder)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_machine_is_to_blame_for_what_it_lacks() {
        let of_machine = |errno: Errno| is_of_machine(&io::Error::from_raw_os_error(errno as i32));
        assert!([Errno::ENOSPC, Errno::EMFILE, Errno::EAGAIN, Errno::EROFS].into_iter().all(of_machine));
        assert!(![Errno::ENOENT, Errno::EACCES, Errno::ENOEXEC].into_iter().any(of_machine));
        assert!(!is_of_machine(&io::Error::other("something else")));
    }

    /// A folder of a rank beside a file that is none of its business.
    fn folders() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let (rank, precious) = (folder.path().join("rank"), folder.path().join("precious"));
        fs::create_dir(&rank).unwrap();
        fs::write(&precious, "\"thesis\"").unwrap();
        (folder, rank, precious)
    }

    #[test]
    fn a_planted_link_is_replaced_and_never_written_through() {
        let (_folder, rank, precious) = folders();
        for name in ["outcome.json", "outcome.new"] {
            symlink(&precious, rank.join(name)).unwrap();
        }
        write_json(&rank.join("outcome.json"), &7).unwrap();
        assert_eq!(read_json(&rank.join("outcome.json")).unwrap(), Some(7));
        symlink(&precious, rank.join("progress")).unwrap();
        create(&rank.join("progress"), 0o600).unwrap().write_all(b"gone").unwrap();
        assert_eq!(fs::read_to_string(&precious).unwrap(), "\"thesis\"");
    }

    #[test]
    fn what_is_no_file_of_ours_is_not_read() {
        let (_folder, rank, precious) = folders();
        symlink(&precious, rank.join("link")).unwrap();
        symlink("/dev/zero", rank.join("endless")).unwrap();
        nix::unistd::mkfifo(&rank.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        fs::create_dir(rank.join("folder")).unwrap();
        File::create(rank.join("huge")).unwrap().set_len(MAX_FILE_SIZE + 1).unwrap();
        for name in ["link", "endless", "pipe", "folder", "huge"] {
            assert!(read_json::<String>(&rank.join(name)).is_err(), "{name}");
        }
        assert_eq!(read_json::<String>(&rank.join("none")).unwrap(), None);
        assert_eq!(read_json::<String>(&precious).unwrap().as_deref(), Some("thesis"));
    }

    #[test]
    fn a_folder_goes_with_all_that_is_in_it_and_links_lead_nowhere() {
        let (_folder, rank, precious) = folders();
        let kept = precious.with_file_name("kept");
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("file"), "1").unwrap();
        for path in ["a/b/c", "a/0", "0/1/0", "1"] {
            fs::create_dir_all(rank.join(path)).unwrap();
            fs::write(rank.join(path).join("file"), "1").unwrap();
        }
        symlink(&kept, rank.join("a/link")).unwrap();
        symlink(&precious, rank.join("link")).unwrap();
        remove_directory(&rank).unwrap();
        assert!(!rank.exists() && precious.exists() && kept.join("file").exists());
        symlink(&kept, &rank).unwrap();
        assert!(remove_directory(&rank).is_err() && kept.join("file").exists());
    }

    /// The usual way calls itself for each, and ends the whole process when its stack does.
    #[test]
    fn folders_within_each_other_go_however_many_they_are() {
        let (_folder, rank, _) = folders();
        let mut deepest = open_directory(&rank).unwrap();
        for _ in 0..20_000 {
            fs::create_dir(within(&deepest, "0")).unwrap();
            deepest = open_directory(&within(&deepest, "0")).unwrap();
        }
        remove_directory(&rank).unwrap();
        assert!(!rank.exists());
    }
}
