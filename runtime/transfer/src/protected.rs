//! What is not read, although the account could: what the kernel makes up, devices, and directories that are
//! private to somebody who shares the account.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

use rustix::fs::fstatfs;

use crate::entry::TransferFailure;
use crate::refused::Refused;

/// File systems whose files are not stored: their sizes are made up, and to read one may do something.
const OF_THE_KERNEL: [u32; 13] = [
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x1cd1,      // devpts
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0x6265_6570, // configfs
    0xde5e_81e4, // efivarfs
    0xcafe_4a11, // bpf
    0x6165_676c, // pstore
    0x4249_4e4d, // binfmt_misc
];

/// The same by name, with what else lies there.
const SYSTEM_DIRECTORIES: [&str; 3] = ["/proc", "/sys", "/dev"];

/// The places that are not read.
#[derive(Debug, Clone)]
pub(crate) struct ProtectedPlaces {
    /// Directories that are private.
    pub(crate) private: Vec<PathBuf>,
    /// Those inside them that are not.
    pub(crate) open: Vec<PathBuf>,
}

impl ProtectedPlaces {
    /// Looks at where an open file or directory really is, whatever path led there.
    pub(crate) fn check(&self, file: impl AsFd) -> io::Result<Result<(), Refused>> {
        let file = file.as_fd();
        let path = std::fs::read_link(descriptor(file))?;
        if self.private.iter().any(|private| path.starts_with(private))
            && !self.open.iter().any(|open| path.starts_with(open))
        {
            let message = "it lies in the state directory of the worker, which no job may read".to_owned();
            return Ok(Err(Refused { kind: TransferFailure::NotAllowed, why: message }));
        }
        let is_of_kernel = u32::try_from(fstatfs(file)?.f_type).is_ok_and(|it| OF_THE_KERNEL.contains(&it));
        if let Some(folder) = SYSTEM_DIRECTORIES.iter().find(|folder| path.starts_with(folder)) {
            return Ok(Err(Refused::special(format!("it lies in {folder}, where nothing is stored"))));
        }
        Ok(match is_of_kernel {
            true => Err(Refused::special(
                "it lies in a file system of the kernel, where nothing is stored".to_owned(),
            )),
            false => Ok(()),
        })
    }
}

/// A path by which this process opens a file again that it has open.
pub(crate) fn descriptor(file: impl AsFd) -> PathBuf {
    Path::new("/proc/self/fd").join(file.as_fd().as_raw_fd().to_string())
}
