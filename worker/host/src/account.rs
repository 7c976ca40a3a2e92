//! An account, and how to run code as it.
//!
//! On Linux, user ids belong to threads. A thread of its own takes the identity of the account and never
//! returns from it; the files that it opens and the processes that it starts are subject to the account's
//! permissions. The other threads keep theirs.

use std::io;
use std::os::unix::fs::lchown;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use nix::unistd::geteuid;
use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::files::{FileContext, FileError};

/// The account that the processes of a rank run as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its name.
    pub name: String,
    /// Its user id.
    pub uid: u32,
    /// Its primary group.
    pub gid: u32,
    /// All groups, the primary one included.
    pub groups: Vec<u32>,
    /// Its home directory.
    pub home: PathBuf,
    /// Its login shell.
    pub shell: PathBuf,
}

impl Account {
    /// Runs `work` as the account. Blocks.
    ///
    /// # Errors
    /// When this process may not change its identity, or no thread can be started.
    pub fn run_as<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        if self.uid == geteuid().as_raw() {
            return Ok(work());
        }
        thread::scope(|scope| {
            let actor = || {
                self.assume_identity()?;
                Ok(work())
            };
            let acting = thread::Builder::new().name("account".into()).spawn_scoped(scope, actor)?;
            acting.join().unwrap_or_else(|panic| resume_unwind(panic))
        })
    }

    /// Gives this thread the identity of the account. The user id comes last, because changing it drops the
    /// privilege to change the others.
    fn assume_identity(&self) -> io::Result<()> {
        let groups: Vec<Gid> = self.groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        set_thread_groups(&groups)?;
        set_thread_res_gid(gid, gid, gid)?;
        set_thread_res_uid(uid, uid, uid)?;
        Ok(())
    }

    /// Makes the account the owner of a file or directory; does not follow symbolic links.
    ///
    /// # Errors
    /// When this process may not do so.
    pub fn own(&self, path: &Path) -> Result<(), FileError> {
        lchown(path, Some(self.uid), Some(self.gid)).at("give to its user", path)
    }

    /// The variables that a login as the account would set.
    #[must_use]
    pub fn environment(&self) -> [(String, String); 4] {
        let path = |path: &Path| path.to_string_lossy().into_owned();
        [
            ("HOME", path(&self.home)),
            ("USER", self.name.clone()),
            ("LOGNAME", self.name.clone()),
            ("SHELL", path(&self.shell)),
        ]
        .map(|(name, value)| (name.to_owned(), value))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::process::Command;

    use super::*;

    fn stranger() -> Account {
        Account {
            name: "stranger".into(),
            uid: 61_200,
            gid: 61_201,
            groups: vec![61_201, 61_202],
            home: "/".into(),
            shell: "/bin/sh".into(),
        }
    }

    #[test]
    fn work_has_the_permissions_of_the_account_and_the_process_keeps_its_own() {
        if !geteuid().is_root() {
            eprintln!("skipped: only root may act as others");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let (secret, own) = (folder.path().join("secret"), folder.path().join("own"));
        fs::write(&secret, "1").unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
        fs::create_dir(&own).unwrap();
        stranger().own(&own).unwrap();
        let (reading, ids) = stranger()
            .run_as(|| {
                fs::write(own.join("made"), "1").unwrap();
                let output = Command::new("sh").args(["-c", "id -u; id -g; id -G"]).output().unwrap();
                (fs::read(&secret), String::from_utf8(output.stdout).unwrap())
            })
            .unwrap();
        assert_eq!(reading.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(ids, "61200\n61201\n61201 61202\n");
        assert_eq!(fs::metadata(own.join("made")).unwrap().uid(), 61_200);
        assert_eq!(fs::read_to_string(&secret).unwrap(), "1");
    }

    #[test]
    fn only_root_can_run_work_as_another_account() {
        if geteuid().is_root() {
            let refused = stranger().run_as(|| stranger_again().run_as(|| ()).is_err()).unwrap();
            assert!(refused);
        } else {
            assert!(stranger().run_as(|| ()).is_err());
        }
    }

    fn stranger_again() -> Account {
        Account { uid: 61_203, ..stranger() }
    }
}
