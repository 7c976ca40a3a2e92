//! The state directory: its layout, the check that only its owner may write to it, and the lock that admits
//! one head.
//!
//! ```text
//! tls/             the cluster's CA and the head's certificate
//! tokens.json      digests of the tokens            node-credentials.json   digests of workers' secrets
//! admin.token      for people on this machine       worker.token     for workers
//! journal.sqlite   events, snapshots and history    address          where the running head listens
//! interference/    trained models                   lock             held by the head that uses it
//! replaying.json   the event whose replay is slow   cluster          the id of the cluster that ran here
//! code/            stored code of users, for jobs that run in snapshots of it
//! ```

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use crate::HeadError;

pub(crate) mod file_system;

/// A state directory that this process has locked. Every method that touches the disk blocks.
#[derive(Debug)]
pub(crate) struct StateDir {
    path: PathBuf,
    _lock: Flock<File>,
}

impl StateDir {
    /// Locks the directory, and creates it if it does not exist.
    pub(crate) fn open(path: &Path) -> Result<StateDir, HeadError> {
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(HeadError::state(path))?;
        check_private(path)?;
        file_system::check_local(path)?;
        file_system::check_free_space(path)?;
        Ok(StateDir { path: path.to_owned(), _lock: lock(path)? })
    }

    /// Locks a directory that a head has used, whatever space its disk has.
    pub(crate) fn lock_existing(path: &Path) -> Result<StateDir, HeadError> {
        check_private(path)?;
        Ok(StateDir { path: path.to_owned(), _lock: lock(path)? })
    }

    pub(crate) fn identity(&self) -> PathBuf {
        self.path.join("tls")
    }

    pub(crate) fn tokens(&self) -> PathBuf {
        self.path.join("tokens.json")
    }

    pub(crate) fn application_key(&self) -> PathBuf {
        self.path.join("application-key")
    }

    pub(crate) fn node_credentials(&self) -> PathBuf {
        self.path.join("node-credentials.json")
    }

    pub(crate) fn admin_token(&self) -> PathBuf {
        self.path.join("admin.token")
    }

    pub(crate) fn worker_token(&self) -> PathBuf {
        self.path.join("worker.token")
    }

    pub(crate) fn journal(&self) -> PathBuf {
        StateDir::journal_in(&self.path)
    }

    /// The journal in a directory that is not opened yet.
    pub(crate) fn journal_in(path: &Path) -> PathBuf {
        path.join("journal.sqlite")
    }

    /// The directory of the trained interference models.
    pub(crate) fn interference(&self) -> PathBuf {
        self.path.join("interference")
    }

    /// The directory of the stored code of users.
    pub(crate) fn code(&self) -> PathBuf {
        self.path.join("code")
    }

    fn address(&self) -> PathBuf {
        self.path.join("address")
    }

    fn cluster(&self) -> PathBuf {
        self.path.join("cluster")
    }

    /// Refuses a directory in which a cluster ran and whose journal is missing or empty: its jobs would be
    /// forgotten without a word.
    pub(crate) fn check_journal(&self) -> Result<(), HeadError> {
        let journal = self.journal();
        let is_there = fs::metadata(&journal).is_ok_and(|file| file.len() > 0);
        match self.cluster().exists() && !is_there {
            true => Err(HeadError::JournalMissing { path: journal }),
            false => Ok(()),
        }
    }

    /// Notes that a cluster with this id has run here.
    pub(crate) fn note_cluster(&self, id: &str) -> Result<(), HeadError> {
        let path = self.cluster();
        if fs::read_to_string(&path).is_ok_and(|noted| noted.trim() == id) {
            return Ok(());
        }
        let write = || {
            let mut file =
                OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
            writeln!(file, "{id}")
        };
        write().map_err(HeadError::state(&path))
    }

    /// Writes the address file, by which programs on this machine find the head.
    pub(crate) fn publish_address(&self, address: SocketAddr) -> Result<(), HeadError> {
        let (path, address) = (self.address(), local_address(address));
        // A draft that is renamed, so that no reader sees half an address.
        let draft = self.path.join("address.new");
        let write = || {
            let mut file =
                OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
            writeln!(file, "{address}")?;
            fs::rename(&draft, &path)
        };
        write().map_err(HeadError::state(&path))
    }

    /// Removes the address file.
    pub(crate) fn withdraw_address(&self) -> Result<(), HeadError> {
        let path = self.address();
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(HeadError::state(&path)(error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// The address for programs on this machine: a head that listens on all interfaces is reached on loopback.
fn local_address(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// A user who can replace files here could impersonate the head.
fn check_private(path: &Path) -> Result<(), HeadError> {
    let mode = fs::metadata(path).map_err(HeadError::state(path))?.mode();
    if mode & 0o022 == 0 { Ok(()) } else { Err(HeadError::WritableByOthers { path: path.to_owned() }) }
}

fn lock(path: &Path) -> Result<Flock<File>, HeadError> {
    let file = path.join("lock");
    let opened = OpenOptions::new().create(true).append(true).mode(0o600).open(&file);
    let opened = opened.map_err(HeadError::state(&file))?;
    Flock::lock(opened, FlockArg::LockExclusiveNonblock).map_err(|(_, error)| {
        if error == Errno::EWOULDBLOCK {
            HeadError::InUse { path: path.to_owned() }
        } else {
            HeadError::state(&file)(error.into())
        }
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_journal_may_be_missing_only_where_no_cluster_ran() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::open(&folder.path().join("state")).unwrap();
        state.check_journal().unwrap();
        state.note_cluster("a cluster").unwrap();
        for remove in [false, true] {
            if remove {
                fs::remove_file(state.journal()).unwrap();
            } else {
                fs::write(state.journal(), "").unwrap();
            }
            let refusal = state.check_journal().unwrap_err().to_string();
            assert!(refusal.contains("journal.sqlite") && refusal.contains("--new-cluster"), "{refusal}");
        }
        fs::write(state.journal(), "a journal").unwrap();
        state.check_journal().unwrap();
    }

    #[test]
    fn two_heads_never_share_a_directory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/state");
        let first = StateDir::open(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        assert!(matches!(StateDir::open(&path), Err(HeadError::InUse { .. })));
        drop(first);
        StateDir::open(&path).unwrap();
    }

    #[test]
    fn a_directory_that_others_can_write_to_is_refused_with_the_remedy() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let refusal = StateDir::open(folder.path()).unwrap_err().to_string();
        assert!(refusal.contains("chmod 700"), "{refusal}");
    }

    #[test]
    fn the_address_file_is_written_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::open(folder.path()).unwrap();
        state.publish_address("0.0.0.0:7070".parse().unwrap()).unwrap();
        assert_eq!(fs::read_to_string(folder.path().join("address")).unwrap(), "127.0.0.1:7070\n");
        state.withdraw_address().unwrap();
        state.withdraw_address().unwrap();
        assert!(!folder.path().join("address").exists());
    }
}
