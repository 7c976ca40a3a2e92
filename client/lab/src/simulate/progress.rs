//! The progress of a simulation: a bar on a terminal, otherwise nothing.

use std::io::{self, IsTerminal as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use cohabit_sim::Observer;
use indicatif::{ProgressBar, ProgressStyle};

const STYLE: &str = "  {prefix} {msg:24} [{bar:30}] {human_pos}/{human_len} jobs {elapsed}";

/// Shows the progress of all runs to the user. Runs at the same time share it.
pub(super) struct SimulationProgress {
    bar: Option<ProgressBar>,
    begun: AtomicUsize,
    runs: usize,
}

/// The progress of one run, and a clock to time its plans with.
pub(super) struct RunProgress<'p> {
    all: &'p SimulationProgress,
    started: Instant,
}

impl SimulationProgress {
    pub(super) fn new(runs: usize) -> SimulationProgress {
        let style = ProgressStyle::with_template(STYLE).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = || ProgressBar::new(0).with_style(style.progress_chars("=> "));
        SimulationProgress { bar: io::stderr().is_terminal().then(bar), begun: AtomicUsize::new(0), runs }
    }

    /// Adds the next run to the bar.
    pub(super) fn begin(&self, policy: &str, jobs: usize) -> RunProgress<'_> {
        let begun = self.begun.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(bar) = &self.bar {
            bar.inc_length(jobs as u64);
            bar.set_prefix(format!("run {begun} of {}", self.runs));
            bar.set_message(policy.to_owned());
        }
        RunProgress { all: self, started: Instant::now() }
    }

    /// Removes the bar.
    pub(super) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Observer for RunProgress<'_> {
    fn progressed(&mut self, _: usize, _: usize) {
        if let Some(bar) = &self.all.bar {
            bar.inc(1);
        }
    }

    fn clock_us(&mut self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

/// Removes the bar if a run fails, too.
impl Drop for SimulationProgress {
    fn drop(&mut self) {
        self.end();
    }
}
