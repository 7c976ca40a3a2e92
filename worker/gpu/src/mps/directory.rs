//! The directory of a GPU's daemon: its sockets, logs and lock.
//!
//! ```text
//! p/           CUDA_MPS_PIPE_DIRECTORY
//! l/           CUDA_MPS_LOG_DIRECTORY
//! n/           always empty: the pipe directory of processes that must not meet any daemon
//! owner        the GPU to which this directory belongs; under /tmp, the state directory too
//! lock         held during each session with the daemon
//! daemon.json  the processes of the daemon and its server, their GPU, and how far their log was read
//! complaints   what the control program printed when it started the daemon
//! ```
//!
//! The path must be short: a socket's name holds 108 bytes, and the daemon fails silently when it is too
//! long. So the directory's name is a 32-bit hash of its owner. Hashes may collide; the `owner` file tells
//! whose a directory is, and an owner whose name is taken uses the name with a number. A later version may
//! add lines to `owner`; such a directory is refused, because its daemon may have clients.
//!
//! Any user who reaches the sockets can command the daemon, so the directory is private to its user. Where
//! that user is root, clients run as other users and must be able to pass through.

use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use cohabit_types::DeviceId;
use nix::unistd::geteuid;

use super::daemon_record::{DaemonFileError, DaemonRecord};
use super::deadline::Deadline;
use super::error::{MpsError, file_error};
use super::pipe_lock::daemon_of_pipe;
use super::processes::{all_of_mps, is_of_mps};
use crate::process::ProcessIdentity;

/// The longest pipe directory, in bytes: a socket's name has 108, and MPS needs some of them.
const MAX_PIPE_LENGTH: usize = 80;

/// How many owners may share a name. More than two never will.
const MAX_CANDIDATES: u32 = 8;

/// Access for the directory's own user alone.
const PRIVATE: u32 = 0o700;

/// Others may pass through to paths that they know.
const PASSABLE: u32 = 0o711;

/// A larger log is emptied, in bytes.
const MAX_LOG_SIZE: u64 = 16 << 20;

/// The directory of one GPU's daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MpsDirectory(PathBuf);

/// Whose directory it is, and which names it may have.
struct Owner {
    parent: PathBuf,
    name: String,
    gpu: DeviceId,
    /// The content of the `owner` file.
    text: String,
}

impl Owner {
    /// In the state directory; where that path is too long for a socket, in a private directory under `/tmp`.
    fn of(state: &Path, gpu: &DeviceId) -> Result<Owner, MpsError> {
        let state = std::path::absolute(state).map_err(|error| file_error("find", state, &error))?;
        let (parent, name) = (state.join("mps"), hash_name(&[gpu.0.as_bytes()]));
        if parent.join(&name).join("p").as_os_str().len() <= MAX_PIPE_LENGTH {
            return Ok(Owner { parent, name, gpu: gpu.clone(), text: format!("{gpu}\n") });
        }
        let parent = PathBuf::from(format!("/tmp/cohabit-{}", geteuid()));
        let name = hash_name(&[state.as_os_str().as_encoded_bytes(), gpu.0.as_bytes()]);
        Ok(Owner { parent, name, gpu: gpu.clone(), text: format!("{gpu}\n{}\n", state.display()) })
    }

    fn candidates(&self) -> impl Iterator<Item = MpsDirectory> {
        let name = |number: u32| match number {
            0 => self.name.clone(),
            number => format!("{}-{number}", self.name),
        };
        (0..MAX_CANDIDATES).map(move |number| MpsDirectory(self.parent.join(name(number))))
    }

    /// The directory that belongs to this owner already, else the first one that it can have.
    fn directory(&self) -> Result<MpsDirectory, MpsError> {
        for is_fit in [Owner::owns, Owner::may_take] {
            for candidate in self.candidates() {
                if is_fit(self, &candidate)? {
                    return Ok(candidate);
                }
            }
        }
        Err(MpsError(format!(
            "all names for the MPS directory of {} are taken in '{}': remove those of GPUs that are gone",
            self.gpu,
            self.parent.display()
        )))
    }

    /// Whether the `owner` file of the directory names this owner.
    fn owns(&self, candidate: &MpsDirectory) -> Result<bool, MpsError> {
        let owner = candidate.owner();
        match owner.as_ref().and_then(|owner| owner.strip_prefix(&self.text)) {
            None => Ok(false),
            Some("") => Ok(true),
            Some(_) => Err(MpsError(format!(
                "cannot use '{}': it has format version 2 or later, and this version of Cohabit reads 1: start the \
                 newer version again, or let the jobs on this GPU end and remove the directory",
                candidate.owner_file().display()
            ))),
        }
    }

    /// Versions before the `owner` file left directories without one; their daemon tells the GPU.
    fn may_take(&self, candidate: &MpsDirectory) -> Result<bool, MpsError> {
        let is_free = candidate.owner().is_none();
        Ok(is_free && candidate.record()?.is_none_or(|record| record.gpu == self.gpu))
    }

    /// Whether the directory belongs to this owner now. Two processes may try at once.
    fn claim(&self, directory: &MpsDirectory) -> Result<bool, MpsError> {
        let (owner, fresh) =
            (directory.owner_file(), directory.0.join(format!("owner.{}", std::process::id())));
        let failed = |error: io::Error| file_error("write", &owner, &error);
        std::fs::write(&fresh, &self.text).map_err(failed)?;
        // A link appears with its whole content, and only where there is none.
        let linked = std::fs::hard_link(&fresh, &owner);
        std::fs::remove_file(&fresh).map_err(failed)?;
        match linked {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(failed(error)),
            Ok(()) | Err(_) => self.owns(directory),
        }
    }

    /// Makes the directory and claims it.
    fn create(&self) -> Result<MpsDirectory, MpsError> {
        for _ in 0..MAX_CANDIDATES {
            let directory = self.directory()?;
            directory.make()?;
            if self.claim(&directory)? {
                // Whoever gets the directory must know the daemon that serves jobs there.
                directory.record()?;
                return Ok(directory);
            }
        }
        Err(MpsError(format!("other processes take every MPS directory in '{}'", self.parent.display())))
    }
}

impl MpsDirectory {
    /// Makes the directory of this GPU's daemon, private to this user: in the state directory, or under
    /// `/tmp` where that path would be too long for a socket. Returns the same path for the same arguments.
    ///
    /// # Errors
    /// When it cannot be made, or cannot be made private; when a daemon runs there whose record cannot be
    /// read, for example because a newer version of Cohabit wrote it.
    pub fn create(state: &Path, gpu: &DeviceId) -> Result<MpsDirectory, MpsError> {
        Owner::of(state, gpu)?.create()
    }

    /// Where [`MpsDirectory::create`] makes it; makes nothing.
    ///
    /// # Errors
    /// When the state directory is relative to a directory that is gone.
    pub fn locate(state: &Path, gpu: &DeviceId) -> Result<PathBuf, MpsError> {
        Owner::of(state, gpu)?.directory().map(|directory| directory.0)
    }

    /// A directory that another process has made.
    #[must_use]
    pub fn existing(path: impl Into<PathBuf>) -> MpsDirectory {
        MpsDirectory(path.into())
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    fn make(&self) -> Result<(), MpsError> {
        let mode = if geteuid().is_root() { PASSABLE } else { PRIVATE };
        if let Some(parent) = self.0.parent() {
            make(parent, mode)?;
        }
        for folder in [self.0.clone(), self.pipe(), self.empty_pipe()] {
            make(&folder, mode)?;
        }
        make(&self.log(), PRIVATE)
    }

    /// The content of the `owner` file; `None` if there is none.
    fn owner(&self) -> Option<String> {
        std::fs::read_to_string(self.owner_file()).ok()
    }

    fn owner_file(&self) -> PathBuf {
        self.0.join("owner")
    }

    /// `CUDA_MPS_PIPE_DIRECTORY`.
    #[must_use]
    pub fn pipe(&self) -> PathBuf {
        self.0.join("p")
    }

    /// `CUDA_MPS_LOG_DIRECTORY`.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.0.join("l")
    }

    /// An empty pipe directory for processes that must not meet any MPS daemon.
    #[must_use]
    pub fn empty_pipe(&self) -> PathBuf {
        self.0.join("n")
    }

    /// Whether a daemon was started here and has not been stopped since. If it does not serve, it has failed.
    ///
    /// # Errors
    /// When a daemon runs there whose record cannot be read.
    pub fn has_daemon_record(&self) -> Result<bool, MpsError> {
        Ok(self.record()?.is_some())
    }

    /// The daemon that runs here, and its server. Blocks.
    #[must_use]
    pub fn processes(&self) -> Vec<ProcessIdentity> {
        // A daemon that is being started has no record yet.
        let running = self.running_daemon();
        let recorded = self.read_record().ok().flatten().map(|record| [record.daemon, record.server]);
        running.into_iter().chain(recorded.into_iter().flatten()).collect()
    }

    pub(super) fn control_log(&self) -> PathBuf {
        self.log().join("control.log")
    }

    pub(super) fn server_log(&self) -> PathBuf {
        self.log().join("server.log")
    }

    pub(super) fn startup_errors(&self) -> PathBuf {
        self.0.join("complaints")
    }

    /// The lock for one session with the daemon, released when the file is dropped. `None` at the deadline.
    pub(super) fn lock_session(&self, deadline: Deadline) -> io::Result<Option<File>> {
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).mode(0o600).open(self.0.join("lock"))?;
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // Polling would lose against processes that ask again at once, so wait in the kernel's queue. That
        // wait cannot be cancelled: after the deadline its thread stays, and releases the lock when it gets
        // it.
        let (give, take) = mpsc::channel();
        let wait = move || _ = give.send(file.lock().map(|()| file));
        std::thread::Builder::new().name("mps-lock".into()).spawn(wait)?;
        take.recv_timeout(deadline.left()).map_or(Ok(None), |taken| taken.map(Some))
    }

    /// The daemon that runs here.
    pub(super) fn running_daemon(&self) -> Option<ProcessIdentity> {
        let pid = daemon_of_pipe(&self.pipe()).ok()??;
        ProcessIdentity::of(pid).filter(|process| is_of_mps(process, &self.pipe()))
    }

    /// The daemon that was started here last, unless it has been stopped since.
    ///
    /// # Errors
    /// When the record cannot be read although processes of MPS live here: they may serve running jobs, so
    /// none may be started beside them. A record that no process is left of counts as none.
    pub(super) fn record(&self) -> Result<Option<DaemonRecord>, MpsError> {
        let file = self.record_file();
        let error = match self.read_record() {
            Ok(record) => return Ok(record),
            Err(error) => error,
        };
        if all_of_mps(&self.pipe()).is_empty() {
            tracing::warn!(file = %file.display(), %error, "the record of an MPS daemon that has ended is ignored");
            return Ok(None);
        }
        let remedy = match error {
            DaemonFileError::Newer(_) => "",
            DaemonFileError::Json(_) | DaemonFileError::Io(_) => {
                "; an MPS daemon runs there, so end the jobs on its GPU, stop it, and remove the file"
            }
        };
        Err(MpsError(format!("cannot read '{}': {error}{remedy}", file.display())))
    }

    fn read_record(&self) -> Result<Option<DaemonRecord>, DaemonFileError> {
        match std::fs::read(self.record_file()) {
            Ok(text) => DaemonRecord::decode(&text).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes `daemon.json`, whole or not at all. It need not survive a power cut: the daemon does not
    /// either.
    pub(super) fn write_record(&self, record: &DaemonRecord) -> Result<(), MpsError> {
        let fresh = self.0.join("daemon.new");
        let text = record.encode().map_err(io::Error::from);
        let written = text.and_then(|text| std::fs::write(&fresh, text));
        let placed = written.and_then(|()| std::fs::rename(&fresh, self.record_file()));
        placed.map_err(|error| file_error("write", &self.record_file(), &error))
    }

    /// Removes what a dead daemon has left: its record, and sockets and lock files that it does not remove
    /// itself.
    pub(super) fn remove_remains(&self) -> Result<(), MpsError> {
        remove(&self.record_file())?;
        let left =
            std::fs::read_dir(self.pipe()).map_err(|error| file_error("read", &self.pipe(), &error))?;
        left.flatten().try_for_each(|entry| remove(&entry.path()))
    }

    /// Renames the logs of an earlier daemon to `*.log.old`.
    pub(super) fn rotate_logs(&self) -> Result<(), MpsError> {
        for log in [self.control_log(), self.server_log()] {
            match std::fs::rename(&log, log.with_extension("log.old")) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(file_error("rename", &log, &error));
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Empties logs that have grown too large: the daemon logs every command. It opens them for appending, so
    /// it goes on at the beginning.
    pub(super) fn trim_logs(&self) {
        for log in [self.control_log(), self.server_log()] {
            let is_large = std::fs::metadata(&log).is_ok_and(|found| found.len() > MAX_LOG_SIZE);
            if is_large && let Err(error) = File::create(&log) {
                tracing::warn!(log = %log.display(), %error, "an MPS log cannot be emptied");
            }
        }
    }

    fn record_file(&self) -> PathBuf {
        self.0.join("daemon.json")
    }
}

fn remove(file: &Path) -> Result<(), MpsError> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(file_error("remove", file, &error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Makes a directory with this mode that belongs to this user, or checks that it is one.
fn make(folder: &Path, mode: u32) -> Result<(), MpsError> {
    match DirBuilder::new().mode(mode).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(file_error("make the directory", folder, &error));
        }
        Ok(()) | Err(_) => {}
    }
    let found = std::fs::symlink_metadata(folder).map_err(|error| file_error("inspect", folder, &error))?;
    if !found.is_dir() || found.uid() != geteuid().as_raw() {
        let path = folder.display();
        return Err(MpsError(format!(
            "'{path}' is not a directory of this user: remove it, MPS needs this path"
        )));
    }
    if found.mode() & 0o777 != mode {
        let made = std::fs::set_permissions(folder, Permissions::from_mode(mode));
        made.map_err(|error| file_error("make private", folder, &error))?;
    }
    Ok(())
}

/// Eight hexadecimal digits, the 32-bit FNV-1a hash of the parts. Never change it: running daemons are found
/// by it.
fn hash_name(parts: &[&[u8]]) -> String {
    let bytes = parts.iter().flat_map(|part| part.iter().chain([&0]));
    let mix = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    format!("{:08x}", bytes.fold(0x811c_9dc5, mix))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::tempdir;

    use super::super::processes::tests::{end, sleeper};
    use super::super::server_log::Position;
    use super::*;

    fn gpu(id: &str) -> DeviceId {
        DeviceId(id.into())
    }

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o777
    }

    fn way() -> u32 {
        if geteuid().is_root() { PASSABLE } else { PRIVATE }
    }

    #[test]
    fn each_gpu_has_a_directory_of_its_own_and_keeps_it() {
        let state = tempdir().unwrap();
        let directory = |id: &str| MpsDirectory::create(state.path(), &gpu(id)).unwrap();
        assert_eq!(directory("GPU-a"), directory("GPU-a"));
        assert_ne!(directory("GPU-a"), directory("GPU-b"));
        assert!(directory("GPU-a").0.starts_with(state.path().join("mps")));
        assert_eq!(hash_name(&[b"GPU-a"]), hash_name(&[b"GPU-a"]));
        assert_ne!(hash_name(&[b"ab", b"c"]), hash_name(&[b"a", b"bc"]), "the border between parts counts");
    }

    #[test]
    fn the_directory_is_made_private_even_where_it_was_open_before() {
        let state = tempdir().unwrap();
        std::fs::create_dir(state.path().join("mps")).unwrap();
        std::fs::set_permissions(state.path().join("mps"), Permissions::from_mode(0o777)).unwrap();
        let directory = MpsDirectory::create(state.path(), &gpu("GPU-a")).unwrap();
        for folder in
            [state.path().join("mps"), directory.0.clone(), directory.pipe(), directory.empty_pipe()]
        {
            assert_eq!(mode(&folder), way(), "{folder:?}");
        }
        assert_eq!(mode(&directory.log()), PRIVATE);
    }

    #[test]
    fn a_symbolic_link_in_place_of_a_directory_is_refused() {
        let (state, elsewhere) = (tempdir().unwrap(), tempdir().unwrap());
        symlink(elsewhere.path(), state.path().join("mps")).unwrap();
        let refused = MpsDirectory::create(state.path(), &gpu("GPU-a")).unwrap_err();
        assert!(refused.0.contains("is not a directory of this user"), "{refused}");
        assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_long_path_is_replaced_by_a_short_one() {
        let state = tempdir().unwrap();
        let long = state.path().join("a".repeat(80));
        std::fs::create_dir(&long).unwrap();
        let directory = MpsDirectory::create(&long, &gpu("GPU-a")).unwrap();
        assert!(directory.pipe().as_os_str().len() <= MAX_PIPE_LENGTH && directory.pipe().is_dir());
        assert_eq!(directory, MpsDirectory::create(&long, &gpu("GPU-a")).unwrap());
        assert_eq!((mode(&directory.0), mode(directory.0.parent().unwrap())), (way(), way()));
        std::fs::remove_dir_all(&directory.0).unwrap();
    }

    #[test]
    fn remains_of_a_dead_daemon_are_removed_and_its_last_logs_are_kept() {
        let state = tempdir().unwrap();
        let directory = MpsDirectory::create(state.path(), &gpu("GPU-a")).unwrap();
        std::fs::write(directory.pipe().join("control"), "").unwrap();
        std::fs::write(directory.control_log(), "last words").unwrap();
        directory.remove_remains().unwrap();
        directory.rotate_logs().unwrap();
        assert_eq!(std::fs::read_dir(directory.pipe()).unwrap().count(), 0);
        assert!(!directory.control_log().exists());
        assert_eq!(std::fs::read_to_string(directory.log().join("control.log.old")).unwrap(), "last words");
    }

    #[test]
    fn one_session_at_a_time_holds_the_lock() {
        let state = tempdir().unwrap();
        let directory = MpsDirectory::create(state.path(), &gpu("GPU-a")).unwrap();
        let now = Deadline::after(std::time::Duration::ZERO);
        let lock = directory.lock_session(now).unwrap();
        assert!(lock.is_some() && directory.lock_session(now).unwrap().is_none());
        drop(lock);
        // The thread that waited in vain gets the lock for a moment.
        let later = Deadline::after(std::time::Duration::from_secs(60));
        assert!(directory.lock_session(later).unwrap().is_some());
    }

    fn owner(parent: &Path, gpu_id: &str) -> Owner {
        let text = format!("{gpu_id}\n");
        Owner { parent: parent.to_owned(), name: "c011151e".into(), gpu: gpu(gpu_id), text }
    }

    #[test]
    fn two_gpus_whose_names_collide_have_different_directories_and_keep_them() {
        let state = tempdir().unwrap();
        let create = |id: &str| owner(state.path(), id).create().unwrap();
        let (first, second) = (create("GPU-a"), create("GPU-b"));
        assert_ne!(first, second);
        assert_eq!((create("GPU-b"), create("GPU-a")), (second.clone(), first.clone()));
        std::fs::remove_dir_all(first.path()).unwrap();
        assert_eq!(create("GPU-b"), second, "though the first name is free again");
    }

    #[test]
    fn a_directory_of_an_earlier_version_stays_with_the_gpu_of_its_daemon() {
        let state = tempdir().unwrap();
        let earlier = owner(state.path(), "GPU-a").candidates().next().unwrap();
        earlier.make().unwrap();
        let process = ProcessIdentity::own().unwrap();
        let record = DaemonRecord {
            gpu: gpu("GPU-a"),
            daemon: process.clone(),
            server: process,
            acknowledged_log_position: Position::default(),
        };
        earlier.write_record(&record).unwrap();
        assert_ne!(owner(state.path(), "GPU-b").create().unwrap(), earlier);
        assert_eq!(owner(state.path(), "GPU-a").create().unwrap(), earlier);
        assert!(earlier.record().unwrap().is_some());
    }

    #[test]
    fn a_directory_whose_owner_file_has_more_lines_is_refused_and_left_alone() {
        let state = tempdir().unwrap();
        let directory = owner(state.path(), "GPU-a").create().unwrap();
        std::fs::write(directory.owner_file(), "GPU-a\nversion 2\n").unwrap();
        let refusal = owner(state.path(), "GPU-a").create().unwrap_err().to_string();
        assert!(refusal.contains("version 2 or later") && refusal.contains("reads 1"), "{refusal}");
        assert_eq!(directory.owner().as_deref(), Some("GPU-a\nversion 2\n"));
    }

    /// A record of a newer version.
    const NEWER: &str = r#"{"version":2,"daemons":[]}"#;

    #[test]
    fn the_record_of_a_daemon_that_has_ended_may_be_of_any_version() {
        let state = tempdir().unwrap();
        let directory = owner(state.path(), "GPU-a").create().unwrap();
        assert_eq!(directory.owner().as_deref(), Some("GPU-a\n"), "as released");
        for text in [NEWER, "{"] {
            std::fs::write(directory.record_file(), text).unwrap();
            assert_eq!(owner(state.path(), "GPU-a").create().unwrap(), directory);
            assert!(!directory.has_daemon_record().unwrap());
        }
    }

    #[test]
    fn a_daemon_that_runs_with_a_record_that_cannot_be_read_is_left_alone() {
        let state = tempdir().unwrap();
        let directory = owner(state.path(), "GPU-a").create().unwrap();
        let (child, _) = sleeper("nvidia-cuda-mps-control", &directory.pipe());
        for (text, parts) in [(NEWER, ["version 2", "reads 1 to 1"]), ("{", ["EOF", "remove the file"])] {
            std::fs::write(directory.record_file(), text).unwrap();
            let refusal = owner(state.path(), "GPU-a").create().unwrap_err().to_string();
            assert!(parts.iter().all(|part| refusal.contains(part)), "{refusal}");
            assert_eq!(std::fs::read_to_string(directory.record_file()).unwrap(), text);
        }
        end(child);
    }
}
