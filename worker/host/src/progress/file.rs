//! The file `$COHABIT_PROGRESS`: polled for its last lines.
//!
//! Programs may append to it, rewrite it or replace it, because only its end is read. The disk space of text
//! that was read long ago is released.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

use nix::fcntl::{FallocateFlags, OFlag, fallocate};
use nix::unistd::{getegid, geteuid};

use super::lines::{self, ProgressEntry};
use crate::account::Account;
use crate::files::{FileContext, FileError, OWN_MODE, create, is_owned_alone};

/// How many bytes at the end are read. A longer line is ignored.
const WINDOW: u64 = 64 * 1024;

/// How many bytes of old text may stay on disk.
const MAX_UNFREED: u64 = 16 << 20;

/// The progress file of a rank.
#[derive(Debug)]
pub struct ProgressFile {
    path: PathBuf,
    seen: Option<FileFingerprint>,
    /// The position up to which disk space was released.
    freed: u64,
    /// The position up to which reports were read one by one.
    read_to: u64,
}

/// What is new in the progress file.
#[derive(Debug, Clone, PartialEq)]
pub struct NewProgress {
    /// All its last lines together.
    pub entry: ProgressEntry,
    /// The lines since the last call, one by one; the last line again where the file was rewritten.
    pub reports: Vec<ProgressEntry>,
}

/// What changes with every write.
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

    /// Whether it is the fingerprint of this file.
    fn is_of(self, file: &Metadata) -> bool {
        file.is_file() && file.ino() == self.inode
    }
}

impl ProgressFile {
    /// Creates an empty file for the rank, which belongs to this account or else to this process. An empty
    /// one that it already owns is used as it is.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn create(path: PathBuf, account: Option<&Account>) -> Result<ProgressFile, FileError> {
        let (uid, gid) = match account {
            Some(account) => (account.uid, account.gid),
            None => (geteuid().as_raw(), getegid().as_raw()),
        };
        let found = fs::symlink_metadata(&path).ok();
        let seen = match found.filter(|found| found.len() == 0 && is_owned_alone(found, uid, gid)) {
            Some(found) => found,
            None => {
                let file = create(&path, OWN_MODE)?;
                account.map_or(Ok(()), |account| account.own(&path))?;
                file.metadata().at("inspect", &path)?
            }
        };
        Ok(ProgressFile { path, seen: Some(FileFingerprint::at(&seen)), freed: 0, read_to: 0 })
    }

    /// The content of its last lines, if the file has changed since the last call.
    pub fn read_new(&mut self) -> Option<NewProgress> {
        self.try_read_new().ok().flatten()
    }

    fn try_read_new(&mut self) -> io::Result<Option<NewProgress>> {
        if self.seen == Some(FileFingerprint::at(&fs::symlink_metadata(&self.path)?)) {
            return Ok(None);
        }
        let mut file = self.open()?;
        let metadata = file.metadata()?;
        let look = FileFingerprint::at(&metadata);
        let before = self.seen.replace(look);
        if !metadata.is_file() || before == Some(look) {
            return Ok(None);
        }
        if before.is_none_or(|before| before.inode != look.inode) || look.length < self.read_to {
            self.read_to = 0;
        }
        let begin = look.length.saturating_sub(WINDOW);
        file.seek(SeekFrom::Start(begin))?;
        let mut text = Vec::new();
        file.take(WINDOW).read_to_end(&mut text)?;
        self.free(begin);
        let reports = self.reports(begin, &text);
        Ok(lines::read(&text).map(|entry| NewProgress { entry, reports }))
    }

    /// The reports in this text, which begins here, that were not read yet. A last line without an end is
    /// taken for complete only where the whole file is that line.
    fn reports(&mut self, begin: u64, text: &[u8]) -> Vec<ProgressEntry> {
        let known = self.read_to.saturating_sub(begin).min(text.len() as u64) as usize;
        let complete = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let fresh = text.get(known..complete).unwrap_or_default();
        if fresh.is_empty() {
            let is_rewritten = known == text.len() || complete == 0;
            let last = text.trim_ascii_end().rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
            return if is_rewritten { lines::read_each(last) } else { Vec::new() };
        }
        self.read_to = begin + complete as u64;
        lines::read_each(fresh)
    }

    /// The job may have replaced the file: a pipe must not block us, and a symbolic link is not followed.
    fn open(&self) -> io::Result<File> {
        let careful = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
        OpenOptions::new().read(true).custom_flags(careful.bits()).open(&self.path)
    }

    /// Punches a hole into the beginning of the file. Its length stays, so the job can go on writing in any
    /// way. A file system without holes keeps the text.
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
            // A failure only costs disk space.
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
        let file = ProgressFile::create(folder.path().join("progress"), None).unwrap();
        (folder, file)
    }

    fn append(file: &ProgressFile, text: &[u8]) {
        OpenOptions::new().append(true).open(&file.path).unwrap().write_all(text).unwrap();
    }

    fn step(file: &mut ProgressFile) -> Option<u64> {
        file.read_new().and_then(|new| new.entry.step)
    }

    fn reported(file: &mut ProgressFile) -> Vec<u64> {
        file.read_new().into_iter().flat_map(|new| new.reports).filter_map(|entry| entry.step).collect()
    }

    #[test]
    fn each_line_is_one_report() {
        let (_folder, mut file) = fresh();
        append(&file, b"{\"step\": 1}\n{\"step\": 2}\n{\"st");
        assert_eq!(reported(&mut file), [1, 2]);
        append(&file, b"ep\": 3}\n{\"step\": 4}\n");
        assert_eq!(reported(&mut file), [3, 4]);
        append(&file, b"no report\n");
        assert_eq!(reported(&mut file), [0_u64; 0]);
        append(&file, b"{\"step\": 5}\n");
        assert_eq!(reported(&mut file), [5]);
    }

    #[test]
    fn a_rewritten_file_is_one_report_each_time() {
        let (folder, mut file) = fresh();
        for text in
            ["{\"step\": 10}", "{\"step\": 11}", "{\"step\": 9}\n", "{\"step\": 8}\n", "{\"step\": 7}"]
        {
            fs::write(&file.path, text).unwrap();
            let step: u64 =
                text.trim_end().trim_end_matches('}').rsplit(' ').next().unwrap().parse().unwrap();
            assert_eq!(reported(&mut file), [step], "{text}");
        }
        fs::write(folder.path().join("other"), "{\"step\": 1}\n{\"step\": 2}\n").unwrap();
        fs::rename(folder.path().join("other"), &file.path).unwrap();
        assert_eq!(reported(&mut file), [1, 2]);
    }

    #[test]
    fn appended_lines_are_read_once() {
        let (_folder, mut file) = fresh();
        assert_eq!(file.read_new(), None);
        append(&file, b"{\"step\": 1}\n{\"step\": 2}\n{\"st");
        assert_eq!(step(&mut file), Some(2));
        assert_eq!(file.read_new(), None);
        append(&file, b"ep\": 3}\n");
        assert_eq!(step(&mut file), Some(3));
    }

    #[test]
    fn a_rewritten_or_replaced_file_is_read() {
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
    fn a_huge_line_does_not_hide_later_lines() {
        let (_folder, mut file) = fresh();
        append(&file, format!("{{\"step\": 1, \"x\": \"{}\"}}\n", "y".repeat(1 << 20)).as_bytes());
        assert_eq!(file.read_new(), None);
        append(&file, b"{\"step\": 2}\n");
        assert_eq!(step(&mut file), Some(2));
    }

    #[test]
    fn disk_space_of_old_text_is_released() {
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
    fn links_pipes_and_directories_in_its_place_are_ignored() {
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
