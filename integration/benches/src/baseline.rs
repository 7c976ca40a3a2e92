//! Baselines of this machine: how often the disk under a directory flushes, and how fast programs start and
//! end.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::figures::rate;

/// How long a baseline is measured.
const SPAN: Duration = Duration::from_secs(1);
const PAGE: [u8; 4096] = [7; 4096];

/// Pages per second that can be appended to a file in this directory, each flushed before the next.
pub(crate) fn flushes_per_second(folder: &Path) -> f64 {
    let path = folder.join("yardstick");
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(&path).unwrap();
    let (begin, mut count) = (Instant::now(), 0);
    while begin.elapsed() < SPAN {
        file.write_all_at(&PAGE, (count * PAGE.len()) as u64).unwrap();
        file.sync_data().unwrap();
        count += 1;
    }
    let measured = rate(count, begin.elapsed());
    std::fs::remove_file(path).unwrap();
    measured
}

/// Programs per second that can be started and waited for, one after the other.
pub(crate) fn spawns_per_second() -> f64 {
    let (begin, mut count) = (Instant::now(), 0);
    while begin.elapsed() < SPAN {
        one_program();
        count += 1;
    }
    rate(count, begin.elapsed())
}

/// The time that one program takes.
pub(crate) fn one_program() -> Duration {
    let begin = Instant::now();
    // The standard library uses `posix_spawn` for a command without special settings.
    let status = Command::new("/usr/bin/true").stdin(Stdio::null()).env_clear().status().unwrap();
    assert!(status.success());
    begin.elapsed()
}
