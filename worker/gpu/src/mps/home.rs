//! Where the daemon of a GPU has its sockets, logs and lock.
//!
//! ```text
//! p/            CUDA_MPS_PIPE_DIRECTORY
//! l/            CUDA_MPS_LOG_DIRECTORY
//! n/            always empty: the pipe directory of those who must not meet any daemon
//! lock          held by whoever talks to the daemon
//! daemon.json   which processes the daemon and its server are, of which GPU, and how far their log was read
//! complaints    what the daemon said when it was started
//! ```
//!
//! A socket's name has little room, and the daemon says nothing when it has too little, so the whole path is
//! short. Any user who reaches the sockets may ask the daemon, so the folder is for its own user alone; but
//! where that is root, clients are other users, and have to pass through.

use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use cohabit_types::DeviceId;
use nix::unistd::geteuid;
use serde::{Deserialize, Serialize};

use super::patience::Deadline;
use super::processes::is_of_mps;
use super::server_log::Position;
use super::{MpsDirectory, MpsError};
use crate::process::ProcessIdentity;

/// The longest pipe directory, in bytes: a socket's name has 108, and MPS needs some of its own.
const MAX_PIPE_LENGTH: usize = 80;

/// For its own user alone.
const PRIVATE: u32 = 0o700;

/// Others may pass through it to what they know is there.
const PASSABLE: u32 = 0o711;

/// A log that is larger is emptied, in bytes.
const MAX_LOG_SIZE: u64 = 16 << 20;

/// What is known of a daemon that was started, and proved to work.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct DaemonRecord {
    pub(super) gpu: DeviceId,
    pub(super) daemon: ProcessIdentity,
    pub(super) server: ProcessIdentity,
    /// How far its server's log was read and dealt with.
    pub(super) dealt_with: Position,
}

impl MpsDirectory {
    /// The place for this GPU's daemon, made and private: in the state folder, or where that path is too long
    /// for a socket, in a private folder of the temporary one. The same for the same arguments.
    ///
    /// # Errors
    /// When neither can be made private.
    pub fn of(state: &Path, gpu: &DeviceId) -> Result<MpsDirectory, MpsError> {
        MpsDirectory::made(MpsDirectory::place(state, gpu)?)
    }

    /// Where [`MpsDirectory::of`] makes it; nothing is made here.
    ///
    /// # Errors
    /// When the state folder is relative to a folder that is gone.
    pub fn place(state: &Path, gpu: &DeviceId) -> Result<PathBuf, MpsError> {
        let state = std::path::absolute(state).map_err(|error| file_error("find", state, &error))?;
        let near = state.join("mps").join(name_of(&[gpu.0.as_bytes()]));
        if near.join("p").as_os_str().len() <= MAX_PIPE_LENGTH {
            return Ok(near);
        }
        let name = name_of(&[state.as_os_str().as_encoded_bytes(), gpu.0.as_bytes()]);
        Ok(PathBuf::from(format!("/tmp/cohabit-{}", geteuid())).join(name))
    }

    fn made(home: PathBuf) -> Result<MpsDirectory, MpsError> {
        let home = MpsDirectory(home);
        let way = if geteuid().is_root() { PASSABLE } else { PRIVATE };
        if let Some(parent) = home.0.parent() {
            make(parent, way)?;
        }
        for folder in [home.0.clone(), home.pipe(), home.empty_pipe()] {
            make(&folder, way)?;
        }
        make(&home.log(), PRIVATE)?;
        Ok(home)
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

    /// An empty folder for those who must not meet any MPS daemon.
    #[must_use]
    pub fn empty_pipe(&self) -> PathBuf {
        self.0.join("n")
    }

    /// Whether a daemon was started here that nobody has stopped since: if it does not serve, it broke down.
    #[must_use]
    pub fn has_daemon_record(&self) -> bool {
        self.record().is_some()
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

    /// The turn to talk to the daemon, given back when the file is dropped. Nothing if none came in time.
    pub(super) fn turn(&self, deadline: Deadline) -> io::Result<Option<File>> {
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).mode(0o600).open(self.0.join("lock"))?;
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // Who only looks now and then is overtaken by those who come back at once, so wait in the system's
        // own queue. It cannot be left: the thread of one whose patience has ended waits on, and gives the
        // turn back as soon as it has it.
        let (give, take) = mpsc::channel();
        let wait = move || _ = give.send(file.lock().map(|()| file));
        std::thread::Builder::new().name("mps-turn".into()).spawn(wait)?;
        take.recv_timeout(deadline.left()).map_or(Ok(None), |taken| taken.map(Some))
    }

    /// The process that says of itself, in the pipe directory, that it is the daemon, if that is true.
    pub(super) fn announced(&self) -> Option<ProcessIdentity> {
        let text = std::fs::read_to_string(self.pipe().join("nvidia-cuda-mps-control.pid")).ok()?;
        ProcessIdentity::of(text.trim().parse().ok()?).filter(|process| is_of_mps(process, &self.pipe()))
    }

    /// The daemon that was started here last, unless it was stopped since.
    pub(super) fn record(&self) -> Option<DaemonRecord> {
        serde_json::from_slice(&std::fs::read(self.record_file()).ok()?).ok()
    }

    /// Remembers the daemon. The file is whole or absent; after a power cut it means nothing.
    pub(super) fn remember(&self, record: &DaemonRecord) -> Result<(), MpsError> {
        let fresh = self.0.join("daemon.new");
        let text = serde_json::to_vec(record).map_err(io::Error::from);
        let written = text.and_then(|text| std::fs::write(&fresh, text));
        let placed = written.and_then(|()| std::fs::rename(&fresh, self.record_file()));
        placed.map_err(|error| file_error("write", &self.record_file(), &error))
    }

    /// Clears away what a daemon that is gone has left: sockets and lock files, which it would not do itself.
    pub(super) fn forget(&self) -> Result<(), MpsError> {
        remove(&self.record_file())?;
        let left =
            std::fs::read_dir(self.pipe()).map_err(|error| file_error("read", &self.pipe(), &error))?;
        left.flatten().try_for_each(|entry| remove(&entry.path()))
    }

    /// Puts the logs of an earlier daemon aside, one of each.
    pub(super) fn begin_logs(&self) -> Result<(), MpsError> {
        for log in [self.control_log(), self.server_log()] {
            match std::fs::rename(&log, log.with_extension("log.old")) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(file_error("put aside", &log, &error));
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Empties logs that have grown too large: the daemon writes down every command. It appends, and so goes
    /// on at the beginning.
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

/// Makes a folder of this mode that belongs to this user, or makes sure that it is one.
fn make(folder: &Path, mode: u32) -> Result<(), MpsError> {
    match DirBuilder::new().mode(mode).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(file_error("make the folder", folder, &error));
        }
        Ok(()) | Err(_) => {}
    }
    let found = std::fs::symlink_metadata(folder).map_err(|error| file_error("look at", folder, &error))?;
    if !found.is_dir() || found.uid() != geteuid().as_raw() {
        let path = folder.display();
        return Err(MpsError(format!(
            "'{path}' is not a folder of this user: remove it, MPS needs the place"
        )));
    }
    if found.mode() & 0o777 != mode {
        let made = std::fs::set_permissions(folder, Permissions::from_mode(mode));
        made.map_err(|error| file_error("make private", folder, &error))?;
    }
    Ok(())
}

pub(super) fn file_error(action: &str, path: &Path, error: &io::Error) -> MpsError {
    MpsError(format!("cannot {action} '{}': {error}", path.display()))
}

/// Eight hexadecimal digits that are the same wherever and whenever they are made of the same parts: FNV-1a.
fn name_of(parts: &[&[u8]]) -> String {
    let bytes = parts.iter().flat_map(|part| part.iter().chain([&0]));
    let mix = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    format!("{:08x}", bytes.fold(0x811c_9dc5, mix))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::tempdir;

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
    fn each_gpu_has_a_home_of_its_own_and_keeps_it() {
        let state = tempdir().unwrap();
        let home = |id: &str| MpsDirectory::of(state.path(), &gpu(id)).unwrap();
        assert_eq!(home("GPU-a"), home("GPU-a"));
        assert_ne!(home("GPU-a"), home("GPU-b"));
        assert!(home("GPU-a").0.starts_with(state.path().join("mps")));
        assert_eq!(name_of(&[b"GPU-a"]), name_of(&[b"GPU-a"]));
        assert_ne!(name_of(&[b"ab", b"c"]), name_of(&[b"a", b"bc"]), "parts are kept apart");
    }

    #[test]
    fn nobody_else_may_look_into_it_even_where_it_was_open_before() {
        let state = tempdir().unwrap();
        std::fs::create_dir(state.path().join("mps")).unwrap();
        std::fs::set_permissions(state.path().join("mps"), Permissions::from_mode(0o777)).unwrap();
        let home = MpsDirectory::of(state.path(), &gpu("GPU-a")).unwrap();
        for folder in [state.path().join("mps"), home.0.clone(), home.pipe(), home.empty_pipe()] {
            assert_eq!(mode(&folder), way(), "{folder:?}");
        }
        assert_eq!(mode(&home.log()), PRIVATE);
    }

    #[test]
    fn a_link_in_the_place_of_a_folder_is_refused() {
        let (state, elsewhere) = (tempdir().unwrap(), tempdir().unwrap());
        symlink(elsewhere.path(), state.path().join("mps")).unwrap();
        let refused = MpsDirectory::of(state.path(), &gpu("GPU-a")).unwrap_err();
        assert!(refused.0.contains("is not a folder of this user"), "{refused}");
        assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_long_path_is_replaced_by_a_short_one() {
        let state = tempdir().unwrap();
        let long = state.path().join("a".repeat(80));
        std::fs::create_dir(&long).unwrap();
        let home = MpsDirectory::of(&long, &gpu("GPU-a")).unwrap();
        assert!(home.pipe().as_os_str().len() <= MAX_PIPE_LENGTH && home.pipe().is_dir());
        assert_eq!(home, MpsDirectory::of(&long, &gpu("GPU-a")).unwrap());
        assert_eq!((mode(&home.0), mode(home.0.parent().unwrap())), (way(), way()));
        std::fs::remove_dir_all(&home.0).unwrap();
    }

    #[test]
    fn what_a_dead_daemon_left_is_cleared_and_its_last_logs_are_kept() {
        let state = tempdir().unwrap();
        let home = MpsDirectory::of(state.path(), &gpu("GPU-a")).unwrap();
        std::fs::write(home.pipe().join("control"), "").unwrap();
        std::fs::write(home.control_log(), "last words").unwrap();
        home.forget().unwrap();
        home.begin_logs().unwrap();
        assert_eq!(std::fs::read_dir(home.pipe()).unwrap().count(), 0);
        assert!(!home.control_log().exists());
        assert_eq!(std::fs::read_to_string(home.log().join("control.log.old")).unwrap(), "last words");
    }

    #[test]
    fn only_one_has_the_turn() {
        let state = tempdir().unwrap();
        let home = MpsDirectory::of(state.path(), &gpu("GPU-a")).unwrap();
        let now = Deadline::after(std::time::Duration::ZERO);
        let turn = home.turn(now).unwrap();
        assert!(turn.is_some() && home.turn(now).unwrap().is_none());
        drop(turn);
        // Who waited in vain has it for a moment.
        let later = Deadline::after(std::time::Duration::from_secs(60));
        assert!(home.turn(later).unwrap().is_some());
    }
}
