//! Writes the log: appends records, starts a new segment when one is full, drops the oldest beyond the cap.
//!
//! A job never fails because its output cannot be stored. When the disk is full, output is dropped and
//! counted, and the next record that can be written follows a note about how much is missing.

use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use cohabit_types::{LogStream, Time};

use super::frame::{HEADER, Header};
use super::limits::LogLimits;
use super::reader::segment_path;
use crate::files::{create, open_directory, path_within};

/// The log of one rank, for its executor.
#[derive(Debug)]
pub struct LogWriter {
    folder: PathBuf,
    limits: LogLimits,
    /// Full segments, in order.
    full: VecDeque<Segment>,
    /// The segment that is written to; `None` before anything was printed.
    open: Option<OpenSegment>,
    /// The position after the last byte that was stored.
    end: u64,
    /// Bytes dropped since the last successful write.
    lost: u64,
}

#[derive(Debug)]
struct Segment {
    start: u64,
    /// Bytes on disk, headers included.
    size: u64,
}

#[derive(Debug)]
struct OpenSegment {
    segment: Segment,
    file: File,
}

impl LogWriter {
    /// An empty log. Its directory is created with the first output: many ranks print nothing.
    #[must_use]
    pub fn new(folder: PathBuf, limits: LogLimits) -> LogWriter {
        LogWriter { folder, limits, full: VecDeque::new(), open: None, end: 0, lost: 0 }
    }

    /// Appends output. Drops and counts it if it cannot be written.
    pub fn append(&mut self, stream: LogStream, at: Time, bytes: &[u8]) {
        if self.try_append(stream, at, bytes).is_err() {
            self.lost += bytes.len() as u64;
        }
    }

    fn try_append(&mut self, stream: LogStream, at: Time, bytes: &[u8]) -> io::Result<()> {
        if self.lost > 0 {
            let note = format!("\n[cohabit: {} bytes of output were lost: the disk was full]\n", self.lost);
            self.write(LogStream::Stderr, at, note.as_bytes())?;
            self.lost = 0;
        }
        self.write(stream, at, bytes)
    }

    fn write(&mut self, stream: LogStream, at: Time, bytes: &[u8]) -> io::Result<()> {
        let length = u32::try_from(bytes.len()).expect("pipes are read in pieces far below 4 GiB");
        let mut frame = Vec::with_capacity(HEADER + bytes.len());
        frame.extend(Header { stream, at, length }.encode());
        frame.extend(bytes);
        let OpenSegment { segment, file } = self.with_room()?;
        if let Err(error) = file.write_all(&frame) {
            file.set_len(segment.size)?;
            file.seek(SeekFrom::Start(segment.size))?;
            return Err(error);
        }
        segment.size += frame.len() as u64;
        self.end += bytes.len() as u64;
        Ok(())
    }

    /// The segment to write to. Starts a new one if there is none or the last is full, and drops the oldest
    /// beyond the cap.
    fn with_room(&mut self) -> io::Result<&mut OpenSegment> {
        let limit = self.limits.segment.0.max(1);
        if self.open.as_ref().is_none_or(|open| open.segment.size >= limit) {
            let folder = self.create_directory()?;
            let file = create(&segment_path(&path_within(&folder, ""), self.end), 0o600)
                .map_err(io::Error::other)?;
            let next = OpenSegment { segment: Segment { start: self.end, size: 0 }, file };
            self.full.extend(self.open.replace(next).map(|open| open.segment));
            self.drop_oldest(&folder)?;
        }
        Ok(self.open.as_mut().expect("it was created if there was none"))
    }

    fn drop_oldest(&mut self, folder: &File) -> io::Result<()> {
        while self.full.iter().map(|segment| segment.size).sum::<u64>() + self.limits.segment.0
            > self.limits.cap.0
            && let Some(oldest) = self.full.pop_front()
        {
            fs::remove_file(segment_path(&path_within(folder, ""), oldest.start))?;
        }
        Ok(())
    }

    /// Creates the directory if it does not exist. A symbolic link that a job put there is refused.
    fn create_directory(&self) -> io::Result<File> {
        match DirBuilder::new().mode(0o700).create(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            Ok(()) | Err(_) => open_directory(&self.folder),
        }
    }
}
