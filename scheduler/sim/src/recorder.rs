//! The last things that happened, in words, for whoever looks into a failure.
//!
//! Words cost more than the simulation itself, so nothing is formatted unless it is kept.

use std::collections::VecDeque;

use cohabit_types::Time;

/// How much is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceDetail {
    /// Nothing.
    Nothing,
    /// This many of the last things.
    Last(usize),
    /// Everything.
    All,
}

/// What happened, a line for each.
#[derive(Debug)]
pub(crate) struct Recorder {
    keep: TraceDetail,
    lines: VecDeque<String>,
}

impl Recorder {
    pub(crate) const fn new(keep: TraceDetail) -> Recorder {
        Recorder { keep, lines: VecDeque::new() }
    }

    pub(crate) fn note(&mut self, now: Time, line: impl FnOnce() -> String) {
        let limit = match self.keep {
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
