//! What clients type on the terminal of a rank, on its way from the daemon to the executor.
//!
//! ```text
//! sizes       a named pipe: each message is the size of a client's window, and says that there may be keys
//! <number>    what the client with this number has typed
//! ```
//!
//! The executor creates the directory with the terminal. The daemon appends to the files and rings the pipe;
//! so neither a link nor a daemon has to last as long as the rank. What the executor has read it frees and
//! blanks: passwords stay on no disk, and the length of a file still counts all that its client has typed.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use cohabit_types::{TerminalSize, Typist};
use nix::libc::{O_NOFOLLOW, O_NONBLOCK};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use rustix::fs::{FallocateFlags, fallocate};

/// The name of the pipe.
const SIZES: &str = "sizes";
/// The bytes of a message in it, which the kernel never divides.
pub const SIZE_MESSAGE: usize = 4;
/// How many clients have a file. The one that typed longest ago loses its own, and takes another number.
const MOST_TYPISTS: usize = 32;
/// The most of one client that waits to be read.
const MOST_WAITING: u64 = 8 << 20;
/// The size of the blocks in which `stat` counts.
const STAT_BLOCK: u64 = 512;
/// The most that is read of one file at once.
const PIECE: u64 = 64 << 10;

/// The directory.
#[derive(Debug, Clone)]
pub struct TerminalDirectory(PathBuf);

/// What was typed since the last look.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TypedKeys {
    /// In no particular order between clients.
    pub bytes: Vec<u8>,
    /// How many clients have come.
    pub arrived: usize,
}

/// How far the files have been read.
#[derive(Debug, Default)]
pub struct KeyReader {
    positions: BTreeMap<u64, u64>,
}

impl TerminalDirectory {
    pub(crate) fn new(path: PathBuf) -> TerminalDirectory {
        TerminalDirectory(path)
    }

    /// The pipe, from which the executor reads.
    #[must_use]
    pub fn sizes(&self) -> PathBuf {
        self.0.join(SIZES)
    }

    /// Creates the directory, which only the user of executor and daemon may enter. What an executor has left
    /// there that came to nothing is removed. Blocks.
    ///
    /// # Errors
    /// When that fails.
    pub fn create(&self) -> io::Result<()> {
        self.remove()?;
        DirBuilder::new().mode(0o700).create(&self.0)?;
        Ok(mkfifo(&self.sizes(), Mode::S_IRUSR | Mode::S_IWUSR)?)
    }

    /// Removes the directory. Blocks.
    ///
    /// # Errors
    /// When that fails; it need not be there.
    pub fn remove(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// Appends what a client has typed at this offset of its own keys, as far as that is new, and tells the
    /// executor the size of its window. Returns how many bytes of this client there are now: less than what
    /// was sent if too much waits, or if an earlier part is missing. Blocks.
    ///
    /// # Errors
    /// `NotFound` if there is no terminal (any more); else when the disk refuses.
    pub fn append(&self, typist: Typist, offset: u64, bytes: &[u8]) -> io::Result<u64> {
        let path = self.0.join(file_name(typist.number));
        if !path.exists() {
            self.make_room()?;
        }
        let mut options = OpenOptions::new();
        let mut file = options.append(true).create(true).mode(0o600).custom_flags(O_NOFOLLOW).open(path)?;
        // A client that lost its link sends the same again, perhaps while it is still being appended.
        file.lock()?;
        let found = file.metadata()?;
        let there = found.len();
        let known = there.checked_sub(offset).and_then(|known| usize::try_from(known).ok());
        let new = known.and_then(|known| bytes.get(known..)).unwrap_or_default();
        let has_room = found.blocks() * STAT_BLOCK < MOST_WAITING;
        let new = if has_room { new } else { &[] };
        file.write_all(new)?;
        self.ring(typist.size);
        Ok(there + new.len() as u64)
    }

    /// Without a reader, or if it has not read for long, the message is lost, and is not needed.
    fn ring(&self, size: TerminalSize) {
        let mut message = [0; SIZE_MESSAGE];
        message[..2].copy_from_slice(&size.rows.to_le_bytes());
        message[2..].copy_from_slice(&size.columns.to_le_bytes());
        let opened = OpenOptions::new().write(true).custom_flags(O_NONBLOCK | O_NOFOLLOW).open(self.sizes());
        if let Ok(mut pipe) = opened
            && pipe.metadata().is_ok_and(|found| found.file_type().is_fifo())
        {
            let _ = pipe.write_all(&message);
        }
    }

    /// Removes the files of those who typed longest ago, until there is room for another.
    fn make_room(&self) -> io::Result<()> {
        let mut files = Vec::new();
        for (_, path) in self.files()? {
            files.push((fs::symlink_metadata(&path)?.modified()?, path));
        }
        files.sort();
        let excess = (files.len() + 1).saturating_sub(MOST_TYPISTS);
        files.iter().take(excess).try_for_each(|(_, path)| fs::remove_file(path))
    }

    /// The files of clients.
    fn files(&self) -> io::Result<Vec<(u64, PathBuf)>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            files.extend(entry.file_name().to_str().and_then(number_of).map(|number| (number, entry.path())));
        }
        Ok(files)
    }
}

impl KeyReader {
    /// What has been typed since the last call. Blocks.
    ///
    /// # Errors
    /// When the directory or a file cannot be read.
    pub fn read(&mut self, directory: &TerminalDirectory) -> io::Result<TypedKeys> {
        let mut keys = TypedKeys::default();
        let files = directory.files()?;
        self.positions.retain(|number, _| files.iter().any(|(there, _)| there == number));
        for (number, path) in files {
            let position = self.positions.entry(number).or_insert_with(|| {
                keys.arrived += 1;
                0
            });
            match read_from(&path, *position, &mut keys.bytes) {
                Ok(length) => *position += length,
                // It was removed meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(keys)
    }
}

/// Appends what is in the file behind this position, up to a limit, and frees its blocks.
fn read_from(path: &Path, position: u64, bytes: &mut Vec<u8>) -> io::Result<u64> {
    let mut file = OpenOptions::new().read(true).write(true).custom_flags(O_NOFOLLOW).open(path)?;
    if file.metadata()?.len() <= position {
        return Ok(0);
    }
    file.seek(SeekFrom::Start(position))?;
    let length = Read::by_ref(&mut file).take(PIECE).read_to_end(bytes)? as u64;
    blank(&file, position, length);
    Ok(length)
}

/// File systems that cannot do it keep what was typed until the rank ends.
fn blank(file: &File, position: u64, length: u64) {
    let _ = fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, position, length);
}

/// The size in a message of the pipe.
#[must_use]
pub fn size_in(message: [u8; SIZE_MESSAGE]) -> TerminalSize {
    let [low_rows, high_rows, low_columns, high_columns] = message;
    TerminalSize {
        rows: u16::from_le_bytes([low_rows, high_rows]),
        columns: u16::from_le_bytes([low_columns, high_columns]),
    }
}

fn file_name(number: u64) -> String {
    format!("{number:016x}")
}

fn number_of(name: &str) -> Option<u64> {
    u64::from_str_radix(name, 16).ok().filter(|number| file_name(*number) == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory() -> (tempfile::TempDir, TerminalDirectory) {
        let folder = tempfile::tempdir().unwrap();
        let directory = TerminalDirectory::new(folder.path().join("terminal"));
        directory.create().unwrap();
        (folder, directory)
    }

    fn typist(number: u64) -> Typist {
        Typist { number, size: TerminalSize { rows: 50, columns: 300 } }
    }

    #[test]
    fn keys_arrive_once_however_often_they_are_sent() {
        let (_folder, directory) = directory();
        let mut reader = KeyReader::default();
        assert_eq!(directory.append(typist(7), 0, b"ls").unwrap(), 2);
        assert_eq!(directory.append(typist(7), 0, b"ls").unwrap(), 2);
        assert_eq!(directory.append(typist(7), 1, b"s\r").unwrap(), 3);
        assert_eq!(directory.append(typist(7), 9, b"late").unwrap(), 3, "what comes before is missing");
        assert_eq!(reader.read(&directory).unwrap(), TypedKeys { bytes: b"ls\r".into(), arrived: 1 });
        assert_eq!(reader.read(&directory).unwrap(), TypedKeys::default());
        assert_eq!(directory.append(typist(8), 0, b"x").unwrap(), 1);
        assert_eq!(reader.read(&directory).unwrap(), TypedKeys { bytes: b"x".into(), arrived: 1 });
    }

    #[test]
    fn what_was_read_is_on_no_disk_any_more_and_still_counts() {
        let (folder, directory) = directory();
        let mut reader = KeyReader::default();
        directory.append(typist(1), 0, b"password").unwrap();
        reader.read(&directory).unwrap();
        let stored = fs::read(folder.path().join("terminal").join(file_name(1))).unwrap();
        assert_eq!(stored, [0; 8]);
        assert_eq!(directory.append(typist(1), 8, b"\r").unwrap(), 9);
        assert_eq!(reader.read(&directory).unwrap().bytes, b"\r");
    }

    #[test]
    fn no_more_is_taken_than_may_wait() {
        let (_folder, directory) = directory();
        let (mut reader, mut sent, piece) = (KeyReader::default(), 0, vec![b'x'; 1 << 20]);
        while sent <= MOST_WAITING {
            match directory.append(typist(1), sent, &piece).unwrap() {
                same if same == sent => break,
                more => sent = more,
            }
        }
        assert_eq!(sent, MOST_WAITING);
        let mut read = 0;
        while read < sent {
            read += reader.read(&directory).unwrap().bytes.len() as u64;
        }
        assert_eq!(directory.append(typist(1), sent, b"x").unwrap(), sent + 1);
    }

    #[test]
    fn of_too_many_clients_the_one_that_typed_longest_ago_begins_anew() {
        let (_folder, directory) = directory();
        for number in 0..=MOST_TYPISTS as u64 {
            directory.append(typist(number), 0, b"x").unwrap();
        }
        assert_eq!(directory.files().unwrap().len(), MOST_TYPISTS);
        let lost = (0..MOST_TYPISTS as u64).filter(|number| {
            let there = directory.append(typist(*number), 1, b"y").unwrap();
            there == 0
        });
        assert!(lost.count() >= 1);
    }

    #[test]
    fn the_pipe_carries_the_size_of_the_window() {
        let (_folder, directory) = directory();
        let mut pipe = OpenOptions::new().read(true).write(true).open(directory.sizes()).unwrap();
        directory.append(typist(1), 0, b"").unwrap();
        let mut message = [0; SIZE_MESSAGE];
        pipe.read_exact(&mut message).unwrap();
        assert_eq!(size_in(message), TerminalSize { rows: 50, columns: 300 });
    }

    #[test]
    fn without_a_terminal_nothing_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let directory = TerminalDirectory::new(folder.path().join("terminal"));
        assert_eq!(directory.append(typist(1), 0, b"x").unwrap_err().kind(), io::ErrorKind::NotFound);
        directory.remove().unwrap();
    }
}
