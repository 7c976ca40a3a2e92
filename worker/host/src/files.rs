//! Small files that are complete or absent, even after a power cut, and errors that name the file.
//!
//! A file is written under another name, flushed and renamed, and its directory is flushed. Everything made
//! here is private to the daemon's user; where ranks run as other users, these may pass through the
//! directories to their own files. A job may replace any file in its rank's directory: symbolic links are
//! never followed, pipes never waited for, and endless files not read to the end.
//!
//! All functions block: call them on a thread for blocking work (`cohabit_actor::blocking`).

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use cohabit_types::NewerVersion;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::unistd::{getegid, geteuid};

/// The largest file that is read, in bytes. The largest of ours holds an order, which fits into a message.
const MAX_FILE_SIZE: u64 = 16 << 20;

/// A failed action on a file or directory.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} '{}': {source}", path.display())]
pub struct FileError {
    action: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl FileError {
    /// Whether the host is the cause and not the request.
    #[must_use]
    pub fn is_of_machine(&self) -> bool {
        is_of_machine(&self.source)
    }

    /// Whether the file was written by a later version of Cohabit.
    #[must_use]
    pub fn is_of_newer_version(&self) -> bool {
        self.source.get_ref().is_some_and(|cause| cause.is::<NewerVersion>())
    }
}

/// Whether the host has run out of disk space, open files, processes or memory, or its disk fails.
pub fn is_of_machine(error: &io::Error) -> bool {
    let exhausted =
        [Errno::ENOSPC, Errno::EDQUOT, Errno::EMFILE, Errno::ENFILE, Errno::EAGAIN, Errno::ENOMEM];
    let broken = [Errno::EIO, Errno::EROFS];
    error.raw_os_error().is_some_and(|code| exhausted.iter().chain(&broken).any(|it| *it as i32 == code))
}

/// Adds the action and the path to an error.
pub trait FileContext<T> {
    /// The error of this action on this path.
    ///
    /// # Errors
    /// The same, with its context.
    fn at(self, action: &'static str, path: &Path) -> Result<T, FileError>;
}

impl<T, E: Into<io::Error>> FileContext<T> for Result<T, E> {
    fn at(self, action: &'static str, path: &Path) -> Result<T, FileError> {
        self.map_err(|error| FileError { action, path: path.to_owned(), source: error.into() })
    }
}

/// Creates a directory and its parents where they are missing.
///
/// # Errors
/// When one cannot be created.
pub fn create_directory(path: &Path) -> Result<(), FileError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).at("create the directory", path)
}

/// Lets other users pass through this directory, but not list it.
///
/// # Errors
/// When its permissions cannot be changed.
pub fn allow_traversal(path: &Path) -> Result<(), FileError> {
    const MODE: u32 = 0o711;
    let is_allowed = fs::symlink_metadata(path).is_ok_and(|found| found.mode() & 0o7777 == MODE);
    match is_allowed {
        true => Ok(()),
        false => fs::set_permissions(path, Permissions::from_mode(MODE)).at("let users pass through", path),
    }
}

/// The permissions of files that are for one user alone.
pub(crate) const OWN_MODE: u32 = 0o600;

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// Replaces the old content atomically, and survives a power cut once this returns.
    Durable,
    /// Replaces the old content atomically; for content without meaning after a power cut.
    ForThisBoot,
    /// Writes in place; for a file that nobody reads before it is complete.
    InPlace,
}

/// Writes this text to a file.
///
/// # Errors
/// When the file cannot be created, written, flushed or renamed.
pub fn write(path: &Path, text: &[u8], mode: WriteMode) -> Result<(), FileError> {
    if mode == WriteMode::InPlace {
        return write_new(path, text).map(drop);
    }
    let fresh = path.with_extension("new");
    let file = write_new(&fresh, text)?;
    if mode == WriteMode::Durable {
        file.sync_all().at("flush", &fresh)?;
    }
    fs::rename(&fresh, path).at("replace", path)?;
    if mode == WriteMode::Durable {
        sync_parent_directory(path)?;
    }
    Ok(())
}

fn write_new(path: &Path, text: &[u8]) -> Result<File, FileError> {
    let Some((mut file, length)) = open_own(path) else {
        let mut file = create(path, OWN_MODE)?;
        file.write_all(text).at("write", path)?;
        return Ok(file);
    };
    file.write_all(text).at("write", path)?;
    // Not emptied before: ext4 writes out at once a file that was.
    if length > text.len() as u64 {
        file.set_len(text.len() as u64).at("shorten", path)?;
    }
    Ok(file)
}

/// A file that is there already, to be written over, and its length. To make another one is much slower.
/// `None` if it is not a file of this process alone, under this name alone.
fn open_own(path: &Path) -> Option<(File, u64)> {
    let careful = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let file = OpenOptions::new().write(true).custom_flags(careful.bits()).open(path).ok()?;
    let found = file.metadata().ok()?;
    is_owned_alone(&found, geteuid().as_raw(), getegid().as_raw()).then_some((file, found.len()))
}

/// Whether it is a file with one name that this user alone may read and write.
pub(crate) fn is_owned_alone(found: &Metadata, uid: u32, gid: u32) -> bool {
    let mode = found.mode() & 0o7777;
    found.is_file() && found.nlink() == 1 && (found.uid(), found.gid(), mode) == (uid, gid, OWN_MODE)
}

/// The whole content of a file.
///
/// # Errors
/// When it cannot be read, is no regular file, or is too long.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let length = file.metadata()?.len().min(MAX_FILE_SIZE);
    // One byte more than the length, so that the end is found without another allocation.
    let mut bytes = Vec::with_capacity(length as usize + 1);
    file.take(MAX_FILE_SIZE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_SIZE {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the file is too long"));
    }
    Ok(bytes)
}

/// Opens a regular file for reading; no symbolic link, directory or pipe.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let careful = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(careful.bits()).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok(file)
}

/// Opens a directory; no symbolic link to one.
pub(crate) fn open_directory(path: &Path) -> io::Result<File> {
    let careful = OFlag::O_NOFOLLOW | OFlag::O_DIRECTORY;
    OpenOptions::new().read(true).custom_flags(careful.bits()).open(path)
}

/// The path of a name in an open directory. It stays valid when the directory is renamed, and is short
/// whatever the length of the directory's own path.
pub(crate) fn path_within(folder: &File, name: impl AsRef<Path>) -> PathBuf {
    Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name)
}

/// Creates an empty file with these permissions, replacing what was there.
///
/// # Errors
/// When it cannot be created.
pub fn create(path: &Path, mode: u32) -> Result<File, FileError> {
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

/// Removes the file if it exists.
pub(crate) fn remove_if_exists(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Removes a directory with everything in it, without following symbolic links. Memory and open files do not
/// grow with the depth of the directories.
///
/// # Errors
/// When something in it cannot be removed.
pub fn remove_directory(path: &Path) -> io::Result<()> {
    let root = open_directory(path)?;
    let mut moved = 0_u64;
    // One directory is emptied at a time; the directories in it move up to the root and wait there.
    while let Some(inner) = remove_files(&root, |inner| Ok(Some(inner.to_owned())))? {
        let folder = open_directory(&path_within(&root, &inner))?;
        remove_files::<()>(&folder, |deeper| {
            while let Err(error) =
                fs::rename(path_within(&folder, deeper), path_within(&root, format!("{moved}")))
            {
                if !matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotADirectory) {
                    return Err(error);
                }
                moved += 1;
            }
            Ok(None)
        })?;
        fs::remove_dir(path_within(&root, &inner))?;
    }
    fs::remove_dir(path)
}

/// Removes all files of a directory and calls `found` with the name of each directory in it, until that
/// returns something.
fn remove_files<T>(
    folder: &File,
    mut found: impl FnMut(&std::ffi::OsStr) -> io::Result<Option<T>>,
) -> io::Result<Option<T>> {
    for entry in fs::read_dir(path_within(folder, ""))? {
        let entry = entry?;
        if !entry.file_type()?.is_dir() {
            fs::remove_file(path_within(folder, entry.file_name()))?;
        } else if let Some(given) = found(&entry.file_name())? {
            return Ok(Some(given));
        }
    }
    Ok(None)
}

/// Opens a file for appending, and creates it if it does not exist.
///
/// # Errors
/// When it cannot be created or opened, or is a symbolic link.
pub fn append_to(path: &Path) -> Result<File, FileError> {
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600).custom_flags(OFlag::O_NOFOLLOW.bits());
    options.open(path).at("create", path)
}

/// Flushes a file and its directory, if the file exists.
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

/// Flushes a directory, so that created, renamed and removed names survive a power cut.
fn sync_parent_directory(path: &Path) -> Result<(), FileError> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    File::open(folder).and_then(|folder| folder.sync_all()).at("flush the directory", folder)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn exhausted_resources_are_a_problem_of_the_host() {
        let of_machine = |errno: Errno| is_of_machine(&io::Error::from_raw_os_error(errno as i32));
        assert!([Errno::ENOSPC, Errno::EMFILE, Errno::EAGAIN, Errno::EROFS].into_iter().all(of_machine));
        assert!(![Errno::ENOENT, Errno::EACCES, Errno::ENOEXEC].into_iter().any(of_machine));
        assert!(!is_of_machine(&io::Error::other("something else")));
    }

    /// The directory of a rank beside a file that it must not touch.
    fn folders() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let (rank, precious) = (folder.path().join("rank"), folder.path().join("precious"));
        fs::create_dir(&rank).unwrap();
        fs::write(&precious, "\"thesis\"").unwrap();
        (folder, rank, precious)
    }

    #[test]
    fn a_planted_symbolic_link_is_replaced_and_never_followed() {
        let (_folder, rank, precious) = folders();
        for name in ["outcome.json", "outcome.new"] {
            symlink(&precious, rank.join(name)).unwrap();
        }
        write(&rank.join("outcome.json"), b"7", WriteMode::Durable).unwrap();
        assert_eq!(read(&rank.join("outcome.json")).unwrap(), b"7");
        symlink(&precious, rank.join("progress")).unwrap();
        create(&rank.join("progress"), 0o600).unwrap().write_all(b"gone").unwrap();
        assert_eq!(fs::read_to_string(&precious).unwrap(), "\"thesis\"");
    }

    #[test]
    fn links_pipes_directories_and_endless_files_are_not_read() {
        let (_folder, rank, precious) = folders();
        symlink(&precious, rank.join("link")).unwrap();
        symlink("/dev/zero", rank.join("endless")).unwrap();
        nix::unistd::mkfifo(&rank.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        fs::create_dir(rank.join("folder")).unwrap();
        File::create(rank.join("huge")).unwrap().set_len(MAX_FILE_SIZE + 1).unwrap();
        for name in ["link", "endless", "pipe", "folder", "huge"] {
            assert!(read(&rank.join(name)).is_err(), "{name}");
        }
        assert_eq!(read(&rank.join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(read(&precious).unwrap(), b"\"thesis\"");
    }

    #[test]
    fn a_directory_is_removed_with_its_content_and_links_are_not_followed() {
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

    /// A recursive removal would overflow its stack and abort the process.
    #[test]
    fn deeply_nested_directories_are_removed() {
        let (_folder, rank, _) = folders();
        let mut deepest = open_directory(&rank).unwrap();
        for _ in 0..20_000 {
            fs::create_dir(path_within(&deepest, "0")).unwrap();
            deepest = open_directory(&path_within(&deepest, "0")).unwrap();
        }
        remove_directory(&rank).unwrap();
        assert!(!rank.exists());
    }
}
