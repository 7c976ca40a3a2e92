//! An account, and how to act as it.
//!
//! Rights belong to threads: one of its own takes on the account and never gets back what it had. Whatever it
//! finds, may not enter or starts, it does as the account; the rest of the process keeps all its rights.

use std::io;
use std::os::unix::fs::lchown;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use nix::unistd::geteuid;
use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::files::{FileContext, FileError};

/// As whom the processes of a rank run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
    /// All groups, the first one included.
    pub groups: Vec<u32>,
    pub home: PathBuf,
    pub shell: PathBuf,
}

impl Account {
    /// Does this work as the account.
    ///
    /// # Errors
    /// When this process may not do so, or has no room for another thread.
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

    /// This thread is the account from now on. Its groups come first, for then it still may change them, and
    /// its rights go with the last step.
    fn assume_identity(&self) -> io::Result<()> {
        let groups: Vec<Gid> = self.groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        set_thread_groups(&groups)?;
        set_thread_res_gid(gid, gid, gid)?;
        set_thread_res_uid(uid, uid, uid)?;
        Ok(())
    }

    /// Gives a file or folder, not what a link leads to, to the account.
    pub fn own(&self, path: &Path) -> Result<(), FileError> {
        lchown(path, Some(self.uid), Some(self.gid)).at("give to its user", path)
    }

    /// What a login as the account would find in its environment.
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
    fn what_is_done_as_an_account_has_its_rights_and_no_others_and_the_process_keeps_its_own() {
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
    fn who_is_not_root_acts_as_nobody_else() {
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
