//! The file behind `$COHABIT_PROGRESS`: looked at now and then, for its last lines alone.
//!
//! Programs append to it, write it anew each time, or put another file in its place: all are understood,
//! because only the end of what is there counts. What was read long ago is given back to the disk.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

use nix::fcntl::{FallocateFlags, OFlag, fallocate};

use super::lines::{self, ProgressEntry};
use crate::files::{FileContext, FileError, create};

/// How much of the end is read; a longer line is passed over.
const WINDOW: u64 = 64 * 1024;

/// How much old text may lie on the disk.
const MAX_UNFREED: u64 = 16 << 20;

/// The file and what was seen of it.
#[derive(Debug)]
pub struct ProgressFile {
    path: PathBuf,
    seen: Option<FileFingerprint>,
    /// Up to where its beginning was given back to the disk.
    freed: u64,
}

/// By what a change shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileFingerprint {
    inode: u64,
    length: u64,
    changed_at: (i64, i64),
}

impl FileFingerprint {
    fn at(file: &Metadata) -> FileFingerprint {
        let changed_at = (file.mtime(), file.mtime_nsec());
        FileFingerprint { inode: file.ino(), length: file.len(), changed_at }
    }

    /// Whether it was a look at this file.
    fn is_of(self, file: &Metadata) -> bool {
        file.is_file() && file.ino() == self.inode
    }
}

impl ProgressFile {
    /// An empty file for the rank to write to.
    pub fn create(path: PathBuf) -> Result<ProgressFile, FileError> {
        let file = create(&path, 0o600)?;
        let seen = file.metadata().at("look at", &path)?;
        Ok(ProgressFile { path, seen: Some(FileFingerprint::at(&seen)), freed: 0 })
    }

    /// What its last lines say, if it has changed since the last look.
    pub fn read_new(&mut self) -> Option<ProgressEntry> {
        self.try_read_new().ok().flatten()
    }

    fn try_read_new(&mut self) -> io::Result<Option<ProgressEntry>> {
        if self.seen == Some(FileFingerprint::at(&fs::symlink_metadata(&self.path)?)) {
            return Ok(None);
        }
        let mut file = self.open()?;
        let metadata = file.metadata()?;
        let look = FileFingerprint::at(&metadata);
        if !metadata.is_file() || self.seen.replace(look) == Some(look) {
            return Ok(None);
        }
        let begin = look.length.saturating_sub(WINDOW);
        file.seek(SeekFrom::Start(begin))?;
        let mut text = Vec::new();
        file.take(WINDOW).read_to_end(&mut text)?;
        self.free(begin);
        Ok(lines::read(&text))
    }

    /// The job may have put anything there: a pipe must not hold us up, nor a link lead us astray.
    fn open(&self) -> io::Result<File> {
        let careful = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
        OpenOptions::new().read(true).custom_flags(careful.bits()).open(&self.path)
    }

    /// Makes a hole of the beginning. The length stays, so it is no matter how the job writes; a file system
    /// that knows no holes keeps the text.
    fn free(&mut self, begin: u64) {
        if begin < self.freed {
            self.freed = 0;
        }
        if begin - self.freed < MAX_UNFREED {
            return;
        }
        let hole = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        let careful = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
        let file = OpenOptions::new().write(true).custom_flags(careful).open(&self.path);
        let is_read =
            |file: &File| file.metadata().is_ok_and(|it| self.seen.is_some_and(|seen| seen.is_of(&it)));
        if let Some(file) = file.ok().filter(is_read) {
            // Only disk space is at stake.
            let _ = fallocate(&file, hole, 0, begin.cast_signed());
        }
        self.freed = begin;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn fresh() -> (tempfile::TempDir, ProgressFile) {
        let folder = tempfile::tempdir().unwrap();
        let file = ProgressFile::create(folder.path().join("progress")).unwrap();
        (folder, file)
    }

    fn append(file: &ProgressFile, text: &[u8]) {
        OpenOptions::new().append(true).open(&file.path).unwrap().write_all(text).unwrap();
    }

    fn step(file: &mut ProgressFile) -> Option<u64> {
        file.read_new().and_then(|line| line.step)
    }

    #[test]
    fn appended_lines_are_seen_once() {
        let (_folder, mut file) = fresh();
        assert_eq!(file.read_new(), None);
        append(&file, b"{\"step\": 1}\n{\"step\": 2}\n{\"st");
        assert_eq!(step(&mut file), Some(2));
        assert_eq!(file.read_new(), None);
        append(&file, b"ep\": 3}\n");
        assert_eq!(step(&mut file), Some(3));
    }

    #[test]
    fn a_file_that_is_written_anew_is_understood() {
        let (folder, mut file) = fresh();
        fs::write(&file.path, "{\"step\": 99}").unwrap();
        assert_eq!(step(&mut file), Some(99));
        fs::write(&file.path, "{\"step\": 100}").unwrap();
        assert_eq!(step(&mut file), Some(100));
        fs::write(&file.path, "{\"step\": 7}").unwrap();
        assert_eq!(step(&mut file), Some(7));
        fs::write(folder.path().join("other"), "{\"step\": 8}").unwrap();
        fs::rename(folder.path().join("other"), &file.path).unwrap();
        assert_eq!(step(&mut file), Some(8));
    }

    #[test]
    fn a_huge_line_hides_nothing_behind_it() {
        let (_folder, mut file) = fresh();
        append(&file, format!("{{\"step\": 1, \"x\": \"{}\"}}\n", "y".repeat(1 << 20)).as_bytes());
        assert_eq!(file.read_new(), None);
        append(&file, b"{\"step\": 2}\n");
        assert_eq!(step(&mut file), Some(2));
    }

    #[test]
    fn what_was_read_long_ago_is_given_back_to_the_disk() {
        let (_folder, mut file) = fresh();
        let filler = format!("{{\"step\": 1, \"x\": \"{}\"}}\n", "y".repeat(60_000)).repeat(40);
        for _ in 0..12 {
            append(&file, filler.as_bytes());
            assert_eq!(step(&mut file), Some(1));
        }
        let metadata = fs::metadata(&file.path).unwrap();
        assert_eq!(metadata.len(), 12 * filler.len() as u64);
        assert!(metadata.blocks() * 512 < 20 << 20, "{} bytes on disk", metadata.blocks() * 512);
        append(&file, b"{\"step\": 2}\n");
        assert_eq!(step(&mut file), Some(2));
    }

    #[test]
    fn what_a_job_puts_in_its_place_does_no_harm() {
        let (folder, mut file) = fresh();
        fs::remove_file(&file.path).unwrap();
        assert_eq!(file.read_new(), None);
        let elsewhere = folder.path().join("elsewhere");
        fs::write(&elsewhere, "{\"step\": 5}").unwrap();
        std::os::unix::fs::symlink(&elsewhere, &file.path).unwrap();
        assert_eq!(file.read_new(), None);
        fs::remove_file(&file.path).unwrap();
        nix::unistd::mkfifo(&file.path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(file.read_new(), None);
        fs::remove_file(&file.path).unwrap();
        fs::create_dir(&file.path).unwrap();
        assert_eq!(file.read_new(), None);
    }
}
