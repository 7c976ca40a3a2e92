//! Properties of the parsers of whatever jobs print and write, for `integration/fuzz`.
//!
//! Every function takes any bytes and panics if the property does not hold.

use std::io::Cursor;

pub use cohabit_gpu::fuzzing::server_log;
use cohabit_types::{LogStream, Span, Time};

use crate::format::{FormatError, JsonLine, VersionedFile};
use crate::log::Header;
use crate::messages::{ExecutorCommand, ExecutorEvent};
use crate::oom_detector::OutOfMemoryDetector;
use crate::progress::{BarParser, ProgressTracker, read_lines};
use crate::records::{ExecutorRecord, OutcomeRecord, StartRecord};

/// Progress is never larger than a report can carry.
pub fn progress_lines(bytes: &[u8]) {
    let mut tracker = ProgressTracker::default();
    for (second, text) in bytes.split(|byte| *byte == 0x1e).enumerate() {
        let Some(line) = read_lines(text) else { continue };
        assert!(line.metrics.len() <= 64, "{} metrics", line.metrics.len());
        tracker.line(Time::EPOCH + Span::from_secs(second as u64), line);
        let Some(progress) = tracker.progress() else { continue };
        assert!(progress.rate.is_none_or(|rate| rate.is_finite() && rate >= 0.0), "{progress:?}");
        assert!(progress.metrics.len() <= 64, "{} metrics", progress.metrics.len());
    }
}

/// Progress bars and out-of-memory messages are found in whatever pieces a program prints them.
pub fn output(bytes: &[u8]) {
    let Some((piece, printed)) = bytes.split_first() else { return };
    let (mut whole, mut pieces) = (BarParser::default(), BarParser::default());
    let (mut said, mut said_in_pieces) = (OutOfMemoryDetector::default(), OutOfMemoryDetector::default());
    let seen = whole.feed(printed);
    let mut last = None;
    for piece in printed.chunks(usize::from(*piece).max(1)) {
        let bar = pieces.feed(piece);
        assert!(bar.is_none_or(|bar| bar.step <= bar.total && bar.total > 0), "{bar:?}");
        last = bar.or(last);
        said_in_pieces.append(LogStream::Stderr, piece);
    }
    said.append(LogStream::Stderr, printed);
    assert!(seen.is_none_or(|bar| bar.step <= bar.total), "{seen:?}");
    assert!(seen.is_none() || last.is_some(), "a bar is not lost between two pieces");
    assert_eq!(said.out_of_gpu_memory(), said_in_pieces.out_of_gpu_memory());
}

/// Records are read as they were written, up to the first truncated or damaged one; no length field allocates
/// memory for missing data.
pub fn log_records(bytes: &[u8]) {
    let mut segment = Cursor::new(bytes);
    let mut written = Vec::new();
    while let Ok(Some(header)) = Header::read(&mut segment) {
        let Ok(Some(text)) = header.read_bytes(&mut segment) else { break };
        written.extend(header.encode());
        written.extend(text);
    }
    assert!(bytes.starts_with(&written));
}

/// A file of a rank's directory, or a line on its socket. The first byte chooses which.
pub fn rank_files(bytes: &[u8]) {
    let Some((kind, text)) = bytes.split_first() else { return };
    let line = str::from_utf8(text).unwrap_or_default();
    match kind % 5 {
        0 => settles(StartRecord::decode(text), VersionedFile::encode, VersionedFile::decode),
        1 => settles(OutcomeRecord::decode(text), VersionedFile::encode, VersionedFile::decode),
        2 => settles(ExecutorRecord::decode(text), VersionedFile::encode, VersionedFile::decode),
        3 => settles(ExecutorEvent::decode(line), JsonLine::encode, decode_line),
        _ => settles(ExecutorCommand::decode(line), JsonLine::encode, decode_line),
    }
}

fn decode_line<T: JsonLine>(line: &[u8]) -> Result<T, FormatError> {
    T::decode(str::from_utf8(line).expect("JSON is UTF-8"))
}

/// What can be decoded is encoded in a form that can be decoded again and means the same.
fn settles<T>(
    meant: Result<T, FormatError>,
    encode: impl Fn(&T) -> Vec<u8>,
    decode: impl Fn(&[u8]) -> Result<T, FormatError>,
) {
    let Ok(meant) = meant else { return };
    let written = encode(&meant);
    let again = decode(&written).expect("what was written can be read");
    assert_eq!(encode(&again), written);
}
