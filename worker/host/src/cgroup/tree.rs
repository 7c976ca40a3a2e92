//! The files of the cgroup tree: the kernel's, or a fake one in tests.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use cohabit_gpu::DeviceRange;

use super::device_filter;

/// Access to the files of a cgroup tree.
pub(super) trait CgroupTree {
    /// Reads a file.
    fn read(&self, file: &Path) -> io::Result<String>;
    /// Writes to a file.
    fn write(&self, file: &Path, text: &str) -> io::Result<()>;
    /// Closes these character devices to the processes of a cgroup.
    fn close_devices(&self, cgroup: &Path, closed: &[DeviceRange]) -> io::Result<()>;
    /// Creates a cgroup in an existing one.
    fn make(&self, cgroup: &Path) -> io::Result<()>;
    /// Removes an empty cgroup.
    fn remove(&self, cgroup: &Path) -> io::Result<()>;
    /// The child cgroups of this one.
    fn children(&self, cgroup: &Path) -> Vec<PathBuf>;
}

/// The kernel's tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kernel;

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

    fn close_devices(&self, cgroup: &Path, closed: &[DeviceRange]) -> io::Result<()> {
        device_filter::close(cgroup, closed)
    }

    fn make(&self, cgroup: &Path) -> io::Result<()> {
        fs::create_dir(cgroup)
    }

    fn remove(&self, cgroup: &Path) -> io::Result<()> {
        fs::remove_dir(cgroup)
    }

    fn children(&self, cgroup: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(cgroup).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        folders.map(|entry| entry.path()).collect()
    }
}

/// Creates a cgroup unless it exists.
pub(super) fn ensure(tree: &impl CgroupTree, cgroup: &Path) -> io::Result<()> {
    match tree.make(cgroup) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// The number after this word in a file of words and numbers; 0 if there is none.
pub(super) fn count(tree: &impl CgroupTree, file: &Path, word: &str) -> u64 {
    let text = tree.read(file).unwrap_or_default();
    let counts = text.lines().filter_map(|line| line.split_once(' '));
    counts.filter(|(name, _)| *name == word).find_map(|(_, count)| count.trim().parse().ok()).unwrap_or(0)
}
