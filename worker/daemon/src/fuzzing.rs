//! What must hold of whatever jobs print and write, for `integration/fuzz`: it is read by the code of the
//! executor and the daemon.
//!
//! Every function takes any bytes and panics where a promise is broken.

use std::io::Cursor;

use cohabit_types::{LogStream, Span, Time};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use cohabit_gpu::fuzzing::server_log;

use crate::executor::gpu_memory::OutOfMemoryDetector;
use crate::log::Header;
use crate::process::ProcessIdentity;
use crate::progress::{BarParser, ProgressTracker, read_lines};
use crate::rank_folder::{OutcomeRecord, StartRecord};
use crate::wire::{ExecutorCommand, ExecutorEvent};

/// Progress that is told is made of numbers, and there is never more of it than a report can carry.
pub fn progress_lines(bytes: &[u8]) {
    let mut tracker = ProgressTracker::default();
    for (second, text) in bytes.split(|byte| *byte == 0x1e).enumerate() {
        let Some(line) = read_lines(text) else { continue };
        assert!(line.metrics.len() <= 64 && line.metrics.values().all(|value| value.is_finite()));
        tracker.line(Time::EPOCH + Span::from_secs(second as u64), line);
        let Some(progress) = tracker.progress() else { continue };
        assert!(progress.rate.is_none_or(|rate| rate.is_finite() && rate >= 0.0), "{progress:?}");
        assert!(progress.metrics.len() <= 64, "{} metrics", progress.metrics.len());
    }
}

/// Bars and the words for a lack of memory are the same in whatever pieces a program prints them.
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

/// Records come out as they went in, up to the first that is cut off or damaged; no length makes room for
/// what is not there.
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

/// What lies in a rank's folder, or is said over the socket there. The first byte chooses which.
pub fn rank_files(bytes: &[u8]) {
    let Some((kind, text)) = bytes.split_first() else { return };
    match kind % 5 {
        0 => settles::<StartRecord>(text),
        1 => settles::<OutcomeRecord>(text),
        2 => settles::<ProcessIdentity>(text),
        3 => settles::<ExecutorEvent>(text),
        _ => settles::<ExecutorCommand>(text),
    }
}

/// What is understood is written in a form that is understood, and means the same.
fn settles<T: Serialize + DeserializeOwned>(text: &[u8]) {
    let Ok(meant) = serde_json::from_slice::<T>(text) else { return };
    let written = serde_json::to_vec(&meant).expect("files of ours have a JSON form");
    let again = serde_json::from_slice::<T>(&written).expect("what was written can be read");
    assert_eq!(serde_json::to_vec(&again).expect("it was written before"), written);
}

/// The table of `cohabit profile`.
pub fn co_location_table(bytes: &[u8]) {
    crate::profile::fuzzing::table(bytes);
}
