//! The reading end: finds a position among the segments and reads records from there.
//!
//! It reads while the executor writes: a record that is not yet whole is not there yet, and a segment that
//! vanishes was dropped. Nothing is kept in memory between two pieces.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use cohabit_types::{LogChunk, LogPosition, LogRecord};

use super::frame::Header;
use crate::files::{open, open_directory, path_within};

/// The most that one piece holds, counting [`RECORD_COST`] for each record.
const MAX_CHUNK: usize = 512 * 1024;

/// What a record costs on its way besides its bytes.
const RECORD_COST: usize = 32;

/// The most lines that a tail goes back.
const MAX_TAIL_LINES: u64 = 1_000_000;

const BUFFER: usize = 256 * 1024;

/// The log of one rank.
#[derive(Debug, Clone)]
pub struct LogDirectory(PathBuf);

/// A segment by the position of its first byte.
type Start = u64;

impl LogDirectory {
    pub fn new(path: PathBuf) -> LogDirectory {
        LogDirectory(path)
    }

    /// What was printed from this position on, as much as one piece holds. It is `complete` if it reaches the
    /// end.
    pub fn read(&self, from: LogPosition) -> io::Result<LogChunk> {
        let segments = self.segments()?;
        let position = match from {
            LogPosition::Start => segments.first().copied().unwrap_or(0),
            LogPosition::Tail(lines) => self.tail(&segments, lines)?,
            LogPosition::At(position) => position,
        };
        let mut piece = ChunkBuilder::at(position);
        let first = segments.partition_point(|start| *start <= position).saturating_sub(1);
        for start in &segments[first.min(segments.len())..] {
            if !self.read_segment(*start, &mut piece)? {
                return Ok(piece.chunk);
            }
        }
        Ok(LogChunk { complete: true, ..piece.chunk })
    }

    /// How large the log is on disk now: it changes whenever something was printed.
    pub fn extent(&self) -> io::Result<(Start, u64)> {
        let Some(last) = self.segments()?.last().copied() else { return Ok((0, 0)) };
        let length = fs::symlink_metadata(segment_path(&self.0, last)).map(|file| file.len());
        Ok((last, if_exists(length)?.unwrap_or(0)))
    }

    /// In order. A rank that never printed has none.
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

    /// Whether the piece may go on with the next segment.
    fn read_segment(&self, start: Start, piece: &mut ChunkBuilder) -> io::Result<bool> {
        let Some(mut file) = self.open(start)? else { return Ok(true) };
        if !piece.reaches(start) {
            return Ok(false);
        }
        let mut position = start;
        while let Some(header) = Header::read(&mut file)? {
            let end = position + u64::from(header.length);
            if end <= piece.chunk.next {
                file.seek_relative(i64::from(header.length))?;
            } else if piece.is_full() {
                return Ok(false);
            } else {
                let Some(bytes) = header.read_bytes(&mut file)? else { return Ok(true) };
                piece.push(header, position, bytes);
            }
            position = end;
        }
        Ok(true)
    }

    /// Where the line begins that is this many lines before the end; a last line without its end counts.
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
        Ok(segments.first().copied().unwrap_or(0))
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

    /// The last positions in the segment, `keep` of them at most, where a line begins before `end`.
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

/// A piece while it is put together.
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

    /// Whether the piece can go on with what begins there. What is missing in between is counted, but never
    /// in the middle of a piece.
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

/// The file of the segment that starts there.
pub(super) fn segment_path(folder: &Path, start: Start) -> PathBuf {
    folder.join(format!("{start:020}"))
}

/// What is not there is no error.
fn if_exists<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(there) => Ok(Some(there)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
