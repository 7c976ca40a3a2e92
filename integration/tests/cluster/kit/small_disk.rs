//! A small file system for a state directory, unmounted after the test. Only root can mount one.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts one on this existing directory. Returns none, and says so, where mounting is not permitted.
    #[expect(clippy::print_stderr, reason = "whoever runs the tests should know what they could not try")]
    pub(crate) fn on(folder: &Path, options: &str) -> Option<SmallDisk> {
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", options, "none"]).arg(folder).output();
        if mounted.is_ok_and(|done| done.status.success()) {
            return Some(SmallDisk(folder.to_owned()));
        }
        eprintln!("skipped: this system lets nobody mount a file system");
        None
    }

    /// Fills the disk.
    pub(crate) fn fill(&self) {
        let mut filler = File::create(self.filler()).unwrap();
        while filler.write_all(&[0; 4_096]).is_ok() {}
    }

    /// Frees space again.
    pub(crate) fn empty(&self) {
        std::fs::remove_file(self.filler()).unwrap();
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Whoever still uses it keeps it to the end.
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}
