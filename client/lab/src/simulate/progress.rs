//! The progress of a simulation: a bar on a terminal, otherwise nothing.

use std::io::{self, IsTerminal as _};
use std::time::Instant;

use cohabit_sim::Observer;
use indicatif::{ProgressBar, ProgressStyle};

const STYLE: &str = "  {prefix} {msg:24} [{bar:30}] {human_pos}/{human_len} jobs {elapsed}";

/// Shows the progress to the user, and gives the simulation a clock to time plans with.
pub(super) struct SimulationProgress {
    bar: Option<ProgressBar>,
    started: Instant,
    begun: usize,
    runs: usize,
}

impl SimulationProgress {
    pub(super) fn new(runs: usize) -> SimulationProgress {
        let style = ProgressStyle::with_template(STYLE).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = || ProgressBar::new(0).with_style(style.progress_chars("=> "));
        SimulationProgress {
            bar: io::stderr().is_terminal().then(bar),
            started: Instant::now(),
            begun: 0,
            runs,
        }
    }

    /// Starts the bar of the next run.
    pub(super) fn begin(&mut self, policy: &str, seed: u64, jobs: usize) {
        self.begun += 1;
        if let Some(bar) = &self.bar {
            bar.reset();
            bar.set_length(jobs as u64);
            bar.set_prefix(format!("run {} of {}", self.begun, self.runs));
            bar.set_message(format!("{policy}, seed {seed}"));
        }
    }

    /// Removes the bar.
    pub(super) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Observer for SimulationProgress {
    fn progressed(&mut self, ended: usize, jobs: usize) {
        if let Some(bar) = &self.bar {
            bar.set_length(jobs as u64);
            bar.set_position(ended as u64);
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
