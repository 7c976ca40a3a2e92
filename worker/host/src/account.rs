//! An account, and how to run code with its permissions.
//!
//! On Linux, user ids belong to threads. A thread of its own takes the effective ids of the account and never
//! returns from them: the files that it opens are subject to the account's permissions. The other threads
//! keep theirs.
//!
//! The thread keeps its real and saved ids. By these the kernel decides who may signal a thread or set its
//! limits, and a signal to one thread of a process ends or stops all of it: with all ids of the account, its
//! user could kill this process for as long as the thread lives.

use std::io;
use std::os::unix::fs::lchown;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use rustix::process::{Gid, Uid, getegid, geteuid, getgid, getuid};
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
    /// Runs `work` with the permissions of the account. Blocks.
    ///
    /// A process that `work` starts could take back the other ids: it must drop them before it executes a
    /// program.
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

    /// Gives this thread the groups and the effective ids of the account. The user id comes last, because
    /// changing it drops the privilege to change the others.
    fn assume_identity(&self) -> io::Result<()> {
        let groups: Vec<Gid> = self.groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
        set_thread_groups(&groups)?;
        set_thread_res_gid(getgid(), Gid::from_raw(self.gid), getegid())?;
        set_thread_res_uid(getuid(), Uid::from_raw(self.uid), geteuid())?;
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
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    use std::sync::mpsc::channel;

    use rustix::thread::gettid;

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
        let (reading, status) = stranger()
            .run_as(|| {
                fs::write(own.join("made"), "1").unwrap();
                (fs::read(&secret), fs::read_to_string("/proc/thread-self/status").unwrap())
            })
            .unwrap();
        assert_eq!(reading.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert!(status.contains("Groups:\t61201 61202"), "{status}");
        assert_eq!(fs::metadata(own.join("made")).unwrap().uid(), 61_200);
        assert_eq!(fs::read_to_string(&secret).unwrap(), "1");
    }

    /// A user can make the thread live for long, with a path that takes long to follow.
    #[test]
    fn the_user_may_not_signal_the_thread_that_acts_for_them() {
        if !geteuid().is_root() {
            eprintln!("skipped: only root may act as others");
            return;
        }
        let (tell, thread) = channel();
        let (end, ended) = channel::<()>();
        let acting = thread::spawn(move || {
            stranger().run_as(move || {
                tell.send(gettid()).unwrap();
                ended.recv().unwrap_err();
            })
        });
        let target = thread.recv().unwrap().as_raw_nonzero().to_string();
        let mut kill = Command::new("kill");
        let tried = kill.args(["-0", &target]).uid(61_200).gid(61_201).output().unwrap();
        drop(end);
        acting.join().unwrap().unwrap();
        assert!(!tried.status.success(), "it may be signalled");
        assert!(String::from_utf8_lossy(&tried.stderr).contains("ermitted"), "{tried:?}");
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
