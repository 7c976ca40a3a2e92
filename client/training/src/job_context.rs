//! A training's ties to the world around it: where progress goes, which signals came, where lines are
//! printed.
//!
//! This is the only place that prints. Whoever reads the output may go away at any time; that is no reason to
//! stop training, so failed writes are dropped.

use std::io::{self, Write};

use anyhow::{Context as _, Result};

use super::progress::ProgressReporter;
use super::stop_signals::StopSignals;

/// Everything that a training shares with its surroundings but its checkpoints.
pub(crate) struct JobContext {
    pub(crate) progress: ProgressReporter,
    pub(crate) stop_signals: StopSignals,
    output: Box<dyn Write + Send>,
}

impl JobContext {
    /// Listens to this process's signals, reports to `$COHABIT_PROGRESS`, prints on stdout.
    pub(crate) fn from_environment() -> Result<Self> {
        let stop_signals = StopSignals::listen().context("cannot listen to signals")?;
        let progress = ProgressReporter::from_environment().unwrap_or_else(|error| {
            warn(&format!("warning: progress is not reported: {error}"));
            ProgressReporter::default()
        });
        Ok(Self { progress, stop_signals, output: Box::new(io::stdout()) })
    }

    /// Speaks no more: another rank speaks for this one.
    pub(crate) fn mute(&mut self) {
        self.progress = ProgressReporter::default();
        self.output = Box::new(io::sink());
    }

    /// Prints a line for people.
    pub(crate) fn say(&mut self, line: &str) {
        let _ = writeln!(self.output, "{line}");
    }

    /// A job that nobody watches.
    #[cfg(test)]
    pub(crate) fn detached() -> Self {
        let (progress, stop_signals) = (ProgressReporter::default(), StopSignals::default());
        Self { progress, stop_signals, output: Box::new(io::sink()) }
    }
}

/// Prints a line about trouble on stderr.
pub(crate) fn warn(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
