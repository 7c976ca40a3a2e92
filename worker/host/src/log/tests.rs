//! Output is read as it was written, whatever is dropped or damaged in between.

use std::fs::{self, OpenOptions};
use std::io::Write;

use cohabit_types::{Bytes, LogChunk, LogPosition, LogStream, Time};

use super::{LogDirectory, LogLimits, LogWriter};

struct Log {
    folder: tempfile::TempDir,
    writer: LogWriter,
}

impl Log {
    fn new(segment: u64, cap: u64) -> Log {
        let folder = tempfile::tempdir().unwrap();
        let limits = LogLimits { segment: Bytes(segment), cap: Bytes(cap) };
        let writer = LogWriter::new(folder.path().to_owned(), limits);
        Log { folder, writer }
    }

    fn print(&mut self, text: &[u8]) {
        self.writer.append(LogStream::Stdout, Time::from_micros(7), text);
    }

    fn read(&self, from: LogPosition) -> LogChunk {
        LogDirectory::new(self.folder.path().to_owned()).read(from).unwrap()
    }

    /// Everything from this position on, chunk by chunk, and how much of it was dropped.
    fn read_all(&self, from: LogPosition) -> (Vec<u8>, u64) {
        let (mut all, mut dropped, mut from) = (Vec::new(), 0, from);
        loop {
            let piece = self.read(from);
            dropped += piece.dropped;
            if piece.records.is_empty() {
                return (all, dropped);
            }
            all.extend(piece.records.into_iter().flat_map(|record| record.bytes));
            from = LogPosition::At(piece.next);
        }
    }

    fn text(&self, from: LogPosition) -> String {
        String::from_utf8(self.read_all(from).0).unwrap()
    }

    fn size_on_disk(&self) -> u64 {
        fs::read_dir(&self.folder).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
    }
}

#[test]
fn a_rank_that_printed_nothing_has_an_empty_log() {
    let log = Log::new(1 << 20, 1 << 24);
    let empty = LogChunk { complete: true, ..LogChunk::default() };
    assert_eq!(log.read(LogPosition::Start), empty);
    assert_eq!(log.read(LogPosition::Tail(10)), empty);
    let nowhere = LogDirectory::new(log.folder.path().join("missing"));
    assert_eq!(nowhere.read(LogPosition::Start).unwrap(), empty);
}

#[test]
fn binary_output_keeps_its_order_and_its_streams() {
    let mut log = Log::new(1 << 20, 1 << 24);
    let every_byte: Vec<u8> = (0..=255).collect();
    log.writer.append(LogStream::Stdout, Time::from_micros(1), &every_byte);
    log.writer.append(LogStream::Stderr, Time::from_micros(2), b"\xff\x00");
    let read = log.read(LogPosition::Start);
    assert_eq!(read.records[0].bytes, every_byte);
    assert_eq!(read.records[1].stream, LogStream::Stderr);
    assert_eq!(read.records[1].at, Time::from_micros(2));
    assert_eq!(read.next, 258);
}

#[test]
fn reading_can_start_in_the_middle_of_a_record() {
    let mut log = Log::new(1 << 20, 1 << 24);
    log.print(b"hello ");
    log.print(b"world");
    assert_eq!(log.text(LogPosition::At(3)), "lo world");
    assert_eq!(log.text(LogPosition::At(11)), "");
    assert_eq!(log.text(LogPosition::At(99)), "");
}

#[test]
fn many_segments_are_read_as_one_log() {
    let mut log = Log::new(100, 1 << 24);
    let lines: Vec<String> = (0..500).map(|n| format!("line {n}\n")).collect();
    lines.iter().for_each(|line| log.print(line.as_bytes()));
    assert!(fs::read_dir(&log.folder).unwrap().count() > 50);
    assert_eq!(log.text(LogPosition::Start), lines.concat());
    for back in [0, 1, 7, 100, 499, 500, 9_999] {
        let expected = lines[lines.len().saturating_sub(back)..].concat();
        assert_eq!(log.text(LogPosition::Tail(back as u64)), expected, "{back} lines back");
    }
}

#[test]
fn an_unfinished_last_line_counts_as_a_line() {
    let mut log = Log::new(1 << 20, 1 << 24);
    log.print(b"one\ntwo\nthr");
    log.print(b"ee");
    assert_eq!(log.text(LogPosition::Tail(1)), "three");
    assert_eq!(log.text(LogPosition::Tail(2)), "two\nthree");
}

#[test]
fn beyond_the_cap_the_oldest_segment_is_dropped_and_counted() {
    let mut log = Log::new(1_000, 5_000);
    for n in 0..2_000 {
        log.print(format!("{n:09}\n").as_bytes());
        assert!(log.size_on_disk() <= 5_000 + 23, "{} bytes on disk", log.size_on_disk());
    }
    let (kept, dropped) = log.read_all(LogPosition::At(0));
    assert_eq!(kept.len() as u64 + dropped, 20_000);
    assert!(kept.len() > 1_500, "only {} bytes are kept", kept.len());
    assert!(kept.ends_with(b"000001998\n000001999\n"));
    assert_eq!(log.read_all(LogPosition::Start), (kept.clone(), dropped));
    assert_eq!(log.read_all(LogPosition::Tail(99_999)), (kept, dropped));
    assert_eq!(log.read_all(LogPosition::Tail(1)), (b"000001999\n".to_vec(), 0));
}

#[test]
fn a_long_log_is_read_in_chunks_of_bounded_size() {
    let mut log = Log::new(8 << 20, 64 << 20);
    for n in 0..100_u8 {
        log.print(&vec![n; 60_000]);
    }
    let piece = log.read(LogPosition::Start);
    let size: usize = piece.records.iter().map(|record| record.bytes.len()).sum();
    assert!(size <= 600_000, "a piece of {size} bytes");
    assert_eq!(log.read_all(LogPosition::Start).0.len(), 6_000_000);
}

#[test]
fn many_small_records_are_read_in_chunks_too() {
    let mut log = Log::new(8 << 20, 64 << 20);
    (0..50_000).for_each(|_| log.print(b"."));
    assert!(log.read(LogPosition::Start).records.len() < 20_000);
    assert_eq!(log.text(LogPosition::Start), ".".repeat(50_000));
}

#[test]
fn a_truncated_record_does_not_hide_later_segments() {
    let mut log = Log::new(100, 1 << 24);
    for n in 0..30 {
        log.print(format!("line {n:02}\n").as_bytes());
    }
    let mut segments: Vec<_> = fs::read_dir(&log.folder).unwrap().map(|e| e.unwrap().path()).collect();
    segments.sort();
    let file = OpenOptions::new().write(true).open(&segments[1]).unwrap();
    file.set_len(file.metadata().unwrap().len() - 3).unwrap();
    let (kept, dropped) = log.read_all(LogPosition::Start);
    assert_eq!(kept.len() as u64 + dropped, 30 * 8);
    assert_eq!(dropped, 8);
    assert!(kept.ends_with(b"line 29\n"));
}

#[test]
fn foreign_files_in_the_directory_are_not_read() {
    let mut log = Log::new(1 << 20, 1 << 24);
    log.print(b"fine\n");
    fs::write(log.folder.path().join("notes.txt"), "not a segment").unwrap();
    OpenOptions::new()
        .append(true)
        .open(log.folder.path().join(format!("{:020}", 0)))
        .unwrap()
        .write_all(&[0; 40])
        .unwrap();
    assert_eq!(log.text(LogPosition::Start), "fine\n");
}

#[test]
fn output_lost_on_a_full_disk_is_noted_in_the_log() {
    let mut log = Log::new(10, 1 << 24);
    log.print(b"before the trouble\n");
    // The next segment cannot be created where a directory has its name.
    let blocked = log.folder.path().join(format!("{:020}", 19));
    fs::create_dir(&blocked).unwrap();
    log.print(b"lost\n");
    log.print(b"lost too\n");
    fs::remove_dir(&blocked).unwrap();
    log.print(b"after it\n");
    let text = log.text(LogPosition::Start);
    assert_eq!(
        text,
        "before the trouble\n\n[cohabit: 14 bytes of output were lost: the disk was full]\nafter it\n"
    );
}
