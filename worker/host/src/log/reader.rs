//! Reads the log: finds a position among the segments and reads records from there.
//!
//! It may read while the executor writes: an incomplete record is treated as not yet written, and a segment
//! that disappears as dropped. No state is kept between two chunks.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use cohabit_types::{LogChunk, LogPosition, LogRecord};

use super::frame::Header;
use crate::files::{open, open_directory, path_within};

/// The most bytes of one chunk, with [`RECORD_COST`] for each record.
const MAX_CHUNK: usize = 512 * 1024;

/// The overhead of a record in a message, in bytes.
const RECORD_COST: usize = 32;

/// The most lines that a tail can ask for.
const MAX_TAIL_LINES: u64 = 1_000_000;

const BUFFER: usize = 256 * 1024;

/// The log of one rank.
#[derive(Debug, Clone)]
pub struct LogDirectory(PathBuf);

/// A segment by the position of its first byte.
type Start = u64;

impl LogDirectory {
    /// The log in this directory, which need not exist.
    #[must_use]
    pub fn new(path: PathBuf) -> LogDirectory {
        LogDirectory(path)
    }

    /// One chunk of output from this position on; `complete` if it reaches the end.
    ///
    /// # Errors
    /// When a segment cannot be read.
    pub fn read(&self, from: LogPosition) -> io::Result<LogChunk> {
        let segments = self.segments()?;
        let position = match from {
            // What was dropped before the first segment is counted.
            LogPosition::Start => 0,
            LogPosition::Tail(lines) => self.tail(&segments, lines)?,
            LogPosition::At(position) => position,
        };
        let mut builder = ChunkBuilder::at(position);
        let first = segments.partition_point(|start| *start <= position).saturating_sub(1);
        for start in &segments[first.min(segments.len())..] {
            if !self.read_segment(*start, &mut builder)? {
                return Ok(builder.chunk);
            }
        }
        Ok(LogChunk { complete: true, ..builder.chunk })
    }

    /// The size of the log on disk: it changes whenever something is printed.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn extent(&self) -> io::Result<(Start, u64)> {
        let Some(last) = self.segments()?.last().copied() else { return Ok((0, 0)) };
        let length = fs::symlink_metadata(segment_path(&self.0, last)).map(|file| file.len());
        Ok((last, if_exists(length)?.unwrap_or(0)))
    }

    /// The segments in order; none if the rank has printed nothing.
    fn segments(&self) -> io::Result<Vec<Start>> {
        let Some(folder) = if_exists(open_directory(&self.0))? else { return Ok(Vec::new()) };
        let entries = fs::read_dir(path_within(&folder, ""))?;
        let mut segments = Vec::new();
        for entry in entries {
            segments.extend(entry?.file_name().to_str().and_then(|name| name.parse::<Start>().ok()));
        }
        segments.sort_unstable();
        Ok(segments)
    }

    /// Reads a segment. Returns whether the chunk may continue with the next one.
    fn read_segment(&self, start: Start, builder: &mut ChunkBuilder) -> io::Result<bool> {
        let Some(mut file) = self.open(start)? else { return Ok(true) };
        if !builder.reaches(start) {
            return Ok(false);
        }
        let mut position = start;
        while let Some(header) = Header::read(&mut file)? {
            let end = position + u64::from(header.length);
            if end <= builder.chunk.next {
                file.seek_relative(i64::from(header.length))?;
            } else if builder.is_full() {
                return Ok(false);
            } else {
                let Some(bytes) = header.read_bytes(&mut file)? else { return Ok(true) };
                builder.push(header, position, bytes);
            }
            position = end;
        }
        Ok(true)
    }

    /// The start of the line that is this many lines before the end, or of the log. An unfinished last line
    /// counts.
    fn tail(&self, segments: &[Start], lines: u64) -> io::Result<u64> {
        let end = self.end(segments)?;
        let mut wanted = lines.min(MAX_TAIL_LINES) as usize;
        for start in segments.iter().rev() {
            if wanted == 0 {
                return Ok(end);
            }
            let begins = self.line_begins(*start, end, wanted)?;
            match begins.front() {
                Some(begin) if begins.len() == wanted => return Ok(*begin),
                Some(_) | None => wanted -= begins.len(),
            }
        }
        Ok(0)
    }

    fn end(&self, segments: &[Start]) -> io::Result<u64> {
        let Some(start) = segments.last() else { return Ok(0) };
        let Some(mut file) = self.open(*start)? else { return Ok(*start) };
        let mut end = *start;
        while let Some(header) = Header::read(&mut file)? {
            file.seek_relative(i64::from(header.length))?;
            end += u64::from(header.length);
        }
        Ok(end)
    }

    /// The last `keep` positions in the segment at which a line begins before `end`.
    fn line_begins(&self, start: Start, end: u64, keep: usize) -> io::Result<VecDeque<u64>> {
        let mut begins = VecDeque::new();
        let Some(mut file) = self.open(start)? else { return Ok(begins) };
        let mut position = start;
        while let Some(header) = Header::read(&mut file)? {
            let Some(bytes) = header.read_bytes(&mut file)? else { break };
            let breaks = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
            for begin in breaks.map(|(at, _)| position + at as u64 + 1).filter(|begin| *begin < end) {
                begins.push_back(begin);
                if begins.len() > keep {
                    begins.pop_front();
                }
            }
            position += u64::from(header.length);
        }
        Ok(begins)
    }

    fn open(&self, start: Start) -> io::Result<Option<BufReader<File>>> {
        let Some(folder) = if_exists(open_directory(&self.0))? else { return Ok(None) };
        let file = if_exists(open(&segment_path(&path_within(&folder, ""), start)))?;
        Ok(file.map(|file| BufReader::with_capacity(BUFFER, file)))
    }
}

/// A chunk that is being built.
struct ChunkBuilder {
    chunk: LogChunk,
    cost: usize,
}

impl ChunkBuilder {
    fn at(position: u64) -> ChunkBuilder {
        ChunkBuilder { chunk: LogChunk { next: position, ..LogChunk::default() }, cost: 0 }
    }

    fn is_full(&self) -> bool {
        self.cost >= MAX_CHUNK
    }

    /// Whether the chunk can continue at this position. Dropped output before it is counted, but never in the
    /// middle of a chunk.
    fn reaches(&mut self, start: Start) -> bool {
        if start <= self.chunk.next {
            return true;
        }
        if self.chunk.records.is_empty() {
            self.chunk.dropped += start - self.chunk.next;
            self.chunk.next = start;
        }
        self.chunk.records.is_empty()
    }

    fn push(&mut self, header: Header, position: u64, mut bytes: Vec<u8>) {
        let end = position + bytes.len() as u64;
        bytes.drain(..(self.chunk.next - position) as usize);
        self.cost += bytes.len() + RECORD_COST;
        self.chunk.next = end;
        self.chunk.records.push(LogRecord { stream: header.stream, at: header.at, bytes });
    }
}

/// The file of the segment with this start.
pub(super) fn segment_path(folder: &Path, start: Start) -> PathBuf {
    folder.join(format!("{start:020}"))
}

/// Turns "not found" into `None`.
fn if_exists<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(there) => Ok(Some(there)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
