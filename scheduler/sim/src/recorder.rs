//! The trace of a run in text, for debugging a failure.
//!
//! Formatting costs more than the simulation itself, so a line is only formatted if it is kept.

use std::collections::VecDeque;

use cohabit_types::Time;

/// How much of the trace is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceDetail {
    /// Nothing.
    Nothing,
    /// This many of the last lines.
    Last(usize),
    /// Everything.
    All,
}

/// The lines of a trace.
#[derive(Debug)]
pub(crate) struct Recorder {
    detail: TraceDetail,
    lines: VecDeque<String>,
}

impl Recorder {
    pub(crate) const fn new(detail: TraceDetail) -> Recorder {
        Recorder { detail, lines: VecDeque::new() }
    }

    /// Adds a line, which is only formatted if it is kept.
    pub(crate) fn add(&mut self, now: Time, line: impl FnOnce() -> String) {
        let limit = match self.detail {
            TraceDetail::Nothing => return,
            TraceDetail::Last(limit) => limit,
            TraceDetail::All => usize::MAX,
        };
        if self.lines.len() >= limit {
            self.lines.pop_front();
        }
        self.lines.push_back(format!("{:>14.6}  {}", now.as_secs_f64(), line()));
    }

    pub(crate) fn into_lines(self) -> Vec<String> {
        self.lines.into()
    }
}
