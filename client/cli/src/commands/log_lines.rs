//! The output of a process as lines: what was printed at once is not always a line.

use std::collections::VecDeque;

use cohabit_client::LogPart;
use cohabit_client::types::{Bytes, LogRecord, LogStream, Time};
use futures::stream::{BoxStream, StreamExt, TryStreamExt, iter, try_unfold};

/// A line that is longer is cut, in bytes.
const LONGEST_LINE: usize = 64 << 10;

/// A line that a process has printed, without its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OutputLine {
    pub(super) stream: LogStream,
    /// When its last part was read.
    pub(super) at: Time,
    pub(super) text: Vec<u8>,
}

/// What was printed and is no whole line yet.
#[derive(Debug, Default)]
struct LineBuffer {
    parts: [Vec<u8>; 2],
    ready: VecDeque<OutputLine>,
}

/// The records of these parts. Where older output is missing, one that says so comes before the rest.
pub(super) fn records<E: Send + 'static>(
    parts: BoxStream<'static, Result<LogPart, E>>,
) -> BoxStream<'static, Result<LogRecord, E>> {
    let records = |LogPart { chunk, .. }: LogPart| {
        let at = chunk.records.first().map_or(Time::EPOCH, |record| record.at);
        let marker = (chunk.dropped > 0).then(|| LogRecord {
            stream: LogStream::Stderr,
            at,
            bytes: (missing(chunk.dropped) + "\n").into_bytes(),
        });
        iter(marker.into_iter().chain(chunk.records).map(Ok))
    };
    parts.map_ok(records).try_flatten().boxed()
}

/// Says that the log has lost its begin, or a part in its middle.
pub(super) fn missing(bytes: u64) -> String {
    format!("[{} of older output are missing: the oldest is removed beyond the size of a log]", Bytes(bytes))
}

/// The lines of this output. Those of the two streams are in the order of their ends.
pub(super) fn lines<E: Send + 'static>(
    records: BoxStream<'static, Result<LogRecord, E>>,
) -> BoxStream<'static, Result<OutputLine, E>> {
    // Records are there until they have ended.
    let state = (Some(records), LineBuffer::default(), Time::EPOCH);
    try_unfold(state, |(mut records, mut buffer, mut last)| async move {
        loop {
            if let Some(line) = buffer.ready.pop_front() {
                return Ok(Some((line, (records, buffer, last))));
            }
            let Some(open) = &mut records else { return Ok(None) };
            match open.try_next().await? {
                Some(record) => {
                    last = record.at;
                    buffer.push(&record);
                }
                None => {
                    records = None;
                    buffer.finish(last);
                }
            }
        }
    })
    .boxed()
}

impl LineBuffer {
    fn push(&mut self, record: &LogRecord) {
        let mut rest = record.bytes.as_slice();
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.part(record.stream).extend_from_slice(&rest[..end]);
            self.end_line(record.stream, record.at);
            rest = &rest[end + 1..];
        }
        self.part(record.stream).extend_from_slice(rest);
        if self.part(record.stream).len() > LONGEST_LINE {
            self.end_line(record.stream, record.at);
        }
    }

    /// Nothing more comes: what is left are lines.
    fn finish(&mut self, at: Time) {
        for stream in [LogStream::Stdout, LogStream::Stderr] {
            if !self.part(stream).is_empty() {
                self.end_line(stream, at);
            }
        }
    }

    fn end_line(&mut self, stream: LogStream, at: Time) {
        let text = std::mem::take(self.part(stream));
        self.ready.push_back(OutputLine { stream, at, text });
    }

    const fn part(&mut self, stream: LogStream) -> &mut Vec<u8> {
        match stream {
            LogStream::Stdout => &mut self.parts[0],
            LogStream::Stderr => &mut self.parts[1],
        }
    }
}

#[cfg(test)]
mod tests {
    use cohabit_client::types::{JobId, LogChunk};
    use cohabit_console::CommandError;

    use super::*;
    use crate::process::block_on;
    use crate::render::samples::at;

    #[test]
    fn lines_end_where_they_were_ended_and_with_the_output() {
        let record = |stream, seconds, text: &str| {
            Ok::<_, CommandError>(LogRecord { stream, at: at(seconds), bytes: text.into() })
        };
        let records = iter([
            record(LogStream::Stdout, 1, "one\ntw"),
            record(LogStream::Stderr, 2, "error\n\n"),
            record(LogStream::Stdout, 3, "o\nthree"),
            record(LogStream::Stderr, 4, "last"),
        ]);
        let found: Vec<OutputLine> = block_on(lines(records.boxed()).try_collect()).unwrap();
        let line = |stream, seconds, text: &str| OutputLine { stream, at: at(seconds), text: text.into() };
        let expected = [
            line(LogStream::Stdout, 1, "one"),
            line(LogStream::Stderr, 2, "error"),
            line(LogStream::Stderr, 2, ""),
            line(LogStream::Stdout, 3, "two"),
            line(LogStream::Stdout, 4, "three"),
            line(LogStream::Stderr, 4, "last"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_log_that_lost_its_begin_says_so_first() {
        let record = LogRecord { stream: LogStream::Stdout, at: at(5), bytes: b"last\n".to_vec() };
        let rank = JobId::new(1).attempt(1).rank(0);
        let part = |dropped| {
            let chunk = LogChunk { records: vec![record.clone()], dropped, ..LogChunk::default() };
            Ok::<_, CommandError>(LogPart { rank, chunk })
        };
        let parts = iter([part(3 << 20), part(0)]).boxed();
        let found: Vec<OutputLine> = block_on(lines(records(parts)).try_collect()).unwrap();
        let text = |line: &OutputLine| String::from_utf8_lossy(&line.text).into_owned();
        assert_eq!(text(&found[0]), missing(3 << 20));
        assert!(text(&found[0]).starts_with("[3 MiB of older output are missing"), "{found:?}");
        assert_eq!((found[0].stream, found[0].at, found.len()), (LogStream::Stderr, at(5), 3));
    }

    #[test]
    fn a_line_without_an_end_is_cut() {
        let record = |_| {
            let bytes = vec![b'x'; LONGEST_LINE / 2 + 1];
            Ok::<_, CommandError>(LogRecord { stream: LogStream::Stdout, at: at(1), bytes })
        };
        let records = iter((0..3).map(record));
        let found: Vec<OutputLine> = block_on(lines(records.boxed()).try_collect()).unwrap();
        let lengths: Vec<usize> = found.iter().map(|line| line.text.len()).collect();
        assert_eq!(lengths, [LONGEST_LINE + 2, LONGEST_LINE / 2 + 1]);
    }
}
