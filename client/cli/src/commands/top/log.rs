//! The output of one rank on the screen of `top`: the latest lines, bounded.

use std::collections::VecDeque;

use cohabit_client::LogPart;
use cohabit_client::types::{JobId, LogRecord, LogStream};

use crate::render::plain_line::plain_line;

/// The most lines that are kept.
const MOST_LINES: usize = 2_000;

/// A line that is longer, in bytes, goes on in the next one.
const LONGEST_LINE: usize = 4_096;

/// The latest output of a rank.
#[derive(Debug)]
pub(super) struct TopLog {
    pub(super) job: JobId,
    pub(super) rank: u32,
    /// The attempt that the latest part is of; 0 before the first.
    pub(super) attempt: u32,
    /// Whether nothing more comes, and why not.
    pub(super) end: Option<String>,
    /// Older lines that are not kept.
    pub(super) forgotten: u64,
    lines: VecDeque<(LogStream, String)>,
    /// What has no end of a line yet: of stdout and of stderr.
    open: [Vec<u8>; 2],
}

impl TopLog {
    pub(super) fn new(job: JobId, rank: u32) -> TopLog {
        TopLog {
            job,
            rank,
            attempt: 0,
            end: None,
            forgotten: 0,
            lines: VecDeque::new(),
            open: Default::default(),
        }
    }

    /// Adds a part of the output.
    pub(super) fn push(&mut self, part: &LogPart) {
        self.attempt = part.rank.attempt.attempt;
        for record in &part.chunk.records {
            self.push_record(record);
        }
    }

    /// The lines, the oldest first; those without an end come last.
    pub(super) fn lines(&self) -> Vec<(LogStream, String)> {
        let streams = [LogStream::Stdout, LogStream::Stderr].into_iter().zip(&self.open);
        let open = streams.filter(|(_, bytes)| !bytes.is_empty());
        let open = open.map(|(stream, bytes)| (stream, plain_line(bytes)));
        self.lines.iter().cloned().chain(open).collect()
    }

    fn push_record(&mut self, record: &LogRecord) {
        for piece in record.bytes.split_inclusive(|byte| *byte == b'\n') {
            for piece in piece.chunks(LONGEST_LINE) {
                self.push_piece(record.stream, piece);
            }
        }
    }

    fn push_piece(&mut self, stream: LogStream, piece: &[u8]) {
        let open = match stream {
            LogStream::Stdout => &mut self.open[0],
            LogStream::Stderr => &mut self.open[1],
        };
        open.extend_from_slice(piece);
        let is_whole = open.last() == Some(&b'\n');
        if is_whole || open.len() >= LONGEST_LINE {
            let line = std::mem::take(open);
            self.lines.push_back((stream, plain_line(line.strip_suffix(b"\n").unwrap_or(&line))));
        }
        while self.lines.len() > MOST_LINES {
            self.lines.pop_front();
            self.forgotten += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use cohabit_client::types::LogChunk;

    use super::*;
    use crate::render::samples::at;

    /// What the log shows of these records.
    fn shown(records: &[(LogStream, &str)]) -> TopLog {
        let job = JobId::new(1);
        let record = |(stream, text): &(LogStream, &str)| LogRecord {
            stream: *stream,
            at: at(1),
            bytes: text.as_bytes().to_vec(),
        };
        let chunk = LogChunk { records: records.iter().map(record).collect(), ..LogChunk::default() };
        let mut log = TopLog::new(job, 0);
        log.push(&LogPart { rank: job.attempt(2).rank(0), chunk });
        log
    }

    fn texts(log: &TopLog) -> Vec<String> {
        log.lines().into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn a_line_without_an_end_is_shown_and_goes_on() {
        let (out, err) = (LogStream::Stdout, LogStream::Stderr);
        let log = shown(&[(out, "one\ntw"), (err, "error\n"), (out, "o\n10%\r20%")]);
        assert_eq!(texts(&log), ["one", "error", "two", "20%"]);
        assert_eq!((log.attempt, log.lines()[1].0), (2, err));
    }

    #[test]
    fn lines_beyond_the_most_are_counted() {
        let text = "x\n".repeat(MOST_LINES + 3);
        let log = shown(&[(LogStream::Stdout, &text)]);
        assert_eq!((log.lines().len(), log.forgotten), (MOST_LINES, 3));
    }

    #[test]
    fn a_long_line_goes_on_in_the_next_one() {
        let text = "x".repeat(2 * LONGEST_LINE + 1);
        let lengths: Vec<usize> =
            texts(&shown(&[(LogStream::Stdout, &text)])).iter().map(String::len).collect();
        assert_eq!(lengths, [LONGEST_LINE, LONGEST_LINE, 1]);
    }
}
