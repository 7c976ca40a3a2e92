//! What a process is to read for a copy of files of a job, and the rights that it has: the daemon writes it
//! to the standard input of the process, which drops the daemon's rights before it touches anything.

use std::fs;
use std::io;

use cohabit_transfer::TransferTask;
use nix::sys::prctl;
use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use serde::{Deserialize, Serialize};

use crate::account::Account;

/// The command by which the program of the executors reads files for a copy.
pub const COPY_READER: &str = "copy-reader";

/// The longest task, as text: two paths of the longest, and the directories of a worker.
pub const LONGEST_COPY_TASK: u64 = 256 << 10;

/// What to read, and as whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyTask {
    /// None if it is read as the daemon's own account.
    pub reader: Option<ReaderIds>,
    /// What to read.
    pub transfer: TransferTask,
}

/// The ids of an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReaderIds {
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
}

impl From<&Account> for ReaderIds {
    fn from(account: &Account) -> ReaderIds {
        ReaderIds { uid: account.uid, gid: account.gid, groups: account.groups.clone() }
    }
}

impl ReaderIds {
    /// Gives these ids to this process for good. It must have one thread.
    ///
    /// # Errors
    /// When it has several, or may not do so.
    pub fn assume(&self) -> io::Result<()> {
        // Ids belong to threads: another one would keep those of before.
        let threads = fs::read_dir("/proc/self/task")?.count();
        if threads != 1 {
            return Err(io::Error::other(format!("{threads} threads cannot change their ids together")));
        }
        prctl::set_no_new_privs()?;
        let groups: Vec<Gid> = self.groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        set_thread_groups(&groups)?;
        set_thread_res_gid(gid, gid, gid)?;
        // Last: it drops the privilege to change the others.
        set_thread_res_uid(uid, uid, uid)?;
        Ok(())
    }
}
