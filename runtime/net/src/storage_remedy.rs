//! What to do about an error of the operating system on a file of the state directory.

use std::io;

use nix::errno::Errno;

/// The remedy for this error, as part of a sentence.
#[must_use]
pub fn storage_remedy(error: &io::Error) -> &'static str {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENOSPC) => "free space on its file system",
        Some(Errno::EDQUOT) => "free space in, or raise, the disk quota of the user who runs this program",
        Some(Errno::EROFS) => {
            "its file system is read-only: find out why (`dmesg`) and mount it for writing again"
        }
        Some(Errno::EIO) => {
            "the disk or its connection fails: see `dmesg`, and move the directory to a sound disk"
        }
        Some(Errno::EMFILE) => {
            "this program has too many open files: raise its limit (`ulimit -n`, `LimitNOFILE=` of its service)"
        }
        Some(Errno::ENFILE) => "this machine has too many open files: raise `fs.file-max` with sysctl",
        Some(Errno::EACCES | Errno::EPERM) => {
            "check that it and its directory belong to the user who runs this program"
        }
        Some(Errno::ENOENT) => "check that it and its directory exist",
        Some(_) | None => "check the file and its file system",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_has_a_remedy_of_its_own() {
        let remedies = [
            (Errno::ENOSPC, "free space"),
            (Errno::EDQUOT, "quota"),
            (Errno::EROFS, "mount it for writing"),
            (Errno::EIO, "dmesg"),
            (Errno::EMFILE, "ulimit -n"),
            (Errno::ENFILE, "fs.file-max"),
            (Errno::EACCES, "belong to the user"),
            (Errno::EPERM, "belong to the user"),
            (Errno::ENOENT, "exist"),
            (Errno::ENXIO, "check the file"),
        ];
        for (errno, part) in remedies {
            let remedy = storage_remedy(&errno.into());
            assert!(remedy.contains(part), "{errno}: {remedy}");
        }
    }
}
