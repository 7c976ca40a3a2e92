//! The environment of a training: progress reports, signals and output.
//!
//! Nothing else prints. Failed writes are ignored, because a reader that closes the output must not stop the
//! training.

use std::io::{self, Write};

use anyhow::{Context as _, Result};

use crate::progress::ProgressReporter;
use crate::stop_signals::StopSignals;

/// The environment of a training, other than its checkpoints.
pub(crate) struct JobContext {
    pub(crate) progress: ProgressReporter,
    pub(crate) stop_signals: StopSignals,
    output: Box<dyn Write + Send>,
}

impl JobContext {
    /// Handles the signals of this process, reports to `$COHABIT_PROGRESS` and prints on stdout.
    pub(crate) fn from_environment() -> Result<Self> {
        let stop_signals = StopSignals::listen().context("cannot handle signals")?;
        let progress = ProgressReporter::from_environment().unwrap_or_else(|error| {
            warn(&format!("warning: progress is not reported: {error}"));
            ProgressReporter::default()
        });
        Ok(Self { progress, stop_signals, output: Box::new(io::stdout()) })
    }

    /// Stops printing and reporting, because another rank does.
    pub(crate) fn mute(&mut self) {
        self.progress = ProgressReporter::default();
        self.output = Box::new(io::sink());
    }

    /// Prints a line on stdout.
    pub(crate) fn print_line(&mut self, line: &str) {
        let _ = writeln!(self.output, "{line}");
    }

    /// A context that prints and reports nothing.
    #[cfg(test)]
    pub(crate) fn detached() -> Self {
        let (progress, stop_signals) = (ProgressReporter::default(), StopSignals::default());
        Self { progress, stop_signals, output: Box::new(io::sink()) }
    }
}

/// Prints a line on stderr.
pub(crate) fn warn(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
