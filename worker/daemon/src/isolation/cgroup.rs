//! Limits of cores, memory and processes by cgroups of version 2, where a part of the tree is delegated to
//! us.
//!
//! ```text
//! …/                  delegated to the worker
//! …/daemon            the daemon and its executors
//! …/ranks/12#1        an attempt: no more than its job claims
//! …/ranks/12#1/0      a rank of it: ends as a whole, and leaves nothing
//! ```
//!
//! The kernel lets processes live in leaves only, which is why the daemon moves to one.

mod claim;
#[cfg(test)]
mod fake_kernel;
mod rank;

use std::fs;
use std::io;
use std::path::Path;

pub(super) use claim::Cgroups;
pub use claim::check_delegation;
pub(crate) use rank::RankCgroup;

/// The files of the tree: those of the kernel, or of what stands for it in tests.
pub(crate) trait CgroupTree {
    /// What a file says.
    fn read(&self, file: &Path) -> io::Result<String>;
    /// Tells a file something.
    fn write(&self, file: &Path, text: &str) -> io::Result<()>;
    /// Makes a cgroup within one that is there.
    fn make(&self, cgroup: &Path) -> io::Result<()>;
    /// Removes a cgroup in which nothing lives.
    fn remove(&self, cgroup: &Path) -> io::Result<()>;
    /// The cgroups directly within this one.
    fn within(&self, cgroup: &Path) -> Vec<std::path::PathBuf>;
}

/// The kernel's own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kernel;

impl CgroupTree for Kernel {
    fn read(&self, file: &Path) -> io::Result<String> {
        fs::read_to_string(file)
    }

    fn write(&self, file: &Path, text: &str) -> io::Result<()> {
        fs::OpenOptions::new().write(true).open(file).and_then(|file| {
            rustix::io::write(&file, text.as_bytes())?;
            Ok(())
        })
    }

    fn make(&self, cgroup: &Path) -> io::Result<()> {
        fs::create_dir(cgroup)
    }

    fn remove(&self, cgroup: &Path) -> io::Result<()> {
        fs::remove_dir(cgroup)
    }

    fn within(&self, cgroup: &Path) -> Vec<std::path::PathBuf> {
        let entries = fs::read_dir(cgroup).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        folders.map(|entry| entry.path()).collect()
    }
}

/// Makes a cgroup unless it is there.
fn ensure(tree: &impl CgroupTree, cgroup: &Path) -> io::Result<()> {
    match tree.make(cgroup) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// The number that stands behind this word in a file of words and numbers.
fn count(tree: &impl CgroupTree, file: &Path, word: &str) -> u64 {
    let text = tree.read(file).unwrap_or_default();
    let counts = text.lines().filter_map(|line| line.split_once(' '));
    counts.filter(|(name, _)| *name == word).find_map(|(_, count)| count.trim().parse().ok()).unwrap_or(0)
}
