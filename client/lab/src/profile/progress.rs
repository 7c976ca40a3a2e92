//! The progress of a measurement: a bar on a terminal, otherwise only sets that could not be measured.

use std::io::{self, IsTerminal as _};

use cohabit_console::output;
use cohabit_profiler::{ProfileObserver, TrialStage};
use cohabit_types::SharingStrategy;
use indicatif::{ProgressBar, ProgressStyle};

const STYLE: &str = "  set {pos} of {len} [{bar:20}] {msg} {elapsed}";

/// Shows the progress to the user.
pub(super) struct ProfileProgress {
    bar: Option<ProgressBar>,
    set: String,
    stage: Option<TrialStage>,
}

impl ProfileProgress {
    pub(super) fn new() -> ProfileProgress {
        let style = ProgressStyle::with_template(STYLE).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = || ProgressBar::new(0).with_style(style.progress_chars("=> "));
        ProfileProgress { bar: io::stderr().is_terminal().then(bar), set: String::new(), stage: None }
    }

    /// Removes the bar.
    pub(super) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl ProfileObserver for ProfileProgress {
    fn begins(&mut self, workloads: &[String], sharing: SharingStrategy, before: usize, of: usize) {
        self.set = format!("{}, {}", workloads.join(" + "), sharing.word());
        self.stage = None;
        if let Some(bar) = &self.bar {
            bar.set_length(of as u64);
            bar.set_position(before as u64);
            bar.set_message(self.set.clone());
        }
    }

    fn stage(&mut self, stage: TrialStage) {
        if self.stage.replace(stage) == Some(stage) {
            return;
        }
        let words = match stage {
            TrialStage::Starting => "starting",
            TrialStage::WarmingUp => "warming up",
            TrialStage::Measuring => "measuring",
        };
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{} {words}", self.set));
        }
    }

    fn ended(&mut self, reason: Option<&str>) {
        let Some(reason) = reason else { return };
        let print = || output::print_message(&format!("{}: {reason}", self.set));
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }
}

/// Removes the bar if the measurement fails, too.
impl Drop for ProfileProgress {
    fn drop(&mut self) {
        self.end();
    }
}
