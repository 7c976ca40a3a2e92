//! The writing end: appends records, starts a new segment when one is full, drops the oldest past the cap.
//!
//! A job never fails because its output cannot be kept. When the disk is full, output is dropped and counted,
//! and the first record that fits again is preceded by a note that says how much is missing.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use cohabit_proto::{LogStream, Time};

use super::LogLimits;
use super::frame::{HEADER, Header};
use super::reader::segment_path;
use crate::files::{FileError, create, make_folder};

/// Appends what one rank prints.
#[derive(Debug)]
pub(crate) struct LogWriter {
    folder: PathBuf,
    limits: LogLimits,
    /// The last one is open.
    segments: VecDeque<Segment>,
    open: File,
    /// Bytes printed and kept at some time.
    end: u64,
    /// Bytes that could not be written since the last that could.
    lost: u64,
}

#[derive(Debug)]
struct Segment {
    start: u64,
    /// On disk, headers included.
    size: u64,
}

impl LogWriter {
    /// An empty log in this folder.
    pub(crate) fn create(folder: &Path, limits: LogLimits) -> Result<LogWriter, FileError> {
        make_folder(folder)?;
        let open = create(&segment_path(folder, 0), 0o600)?;
        let segments = VecDeque::from([Segment { start: 0, size: 0 }]);
        Ok(LogWriter { folder: folder.to_owned(), limits, segments, open, end: 0, lost: 0 })
    }

    /// Appends what was printed at once; drops and counts it if the disk does not take it.
    pub(crate) fn append(&mut self, stream: LogStream, at: Time, bytes: &[u8]) {
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
        self.turn_over()?;
        let length = u32::try_from(bytes.len()).expect("a pipe is read in pieces far below 4 GiB");
        let mut frame = Vec::with_capacity(HEADER + bytes.len());
        frame.extend(Header { stream, at, length }.encode());
        frame.extend(bytes);
        let segment = self.segments.back_mut().expect("the open segment is always there");
        if let Err(error) = self.open.write_all(&frame) {
            self.open.set_len(segment.size)?;
            self.open.seek(SeekFrom::Start(segment.size))?;
            return Err(error);
        }
        segment.size += frame.len() as u64;
        self.end += bytes.len() as u64;
        Ok(())
    }

    /// Starts the next segment if the last is full, and drops those that are too many.
    fn turn_over(&mut self) -> io::Result<()> {
        if self.segments.back().is_none_or(|segment| segment.size < self.limits.segment.0.max(1)) {
            return Ok(());
        }
        let path = segment_path(&self.folder, self.end);
        self.open = create(&path, 0o600).map_err(io::Error::other)?;
        self.segments.push_back(Segment { start: self.end, size: 0 });
        while self.size() + self.limits.segment.0 > self.limits.cap.0 && self.segments.len() > 1 {
            let oldest = self.segments.pop_front().expect("there is more than one");
            fs::remove_file(segment_path(&self.folder, oldest.start))?;
        }
        Ok(())
    }

    fn size(&self) -> u64 {
        self.segments.iter().map(|segment| segment.size).sum()
    }
}
