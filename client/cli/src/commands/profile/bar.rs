//! Shows how far a comparison is: one bar on a terminal; anywhere else only what could not be measured.

use std::io::{self, IsTerminal as _};

use cohabit_client::proto::SharingStrategy;
use cohabit_profiler::{ProfileObserver, TrialStage};
use indicatif::{ProgressBar, ProgressStyle};

use crate::output;

const STYLE: &str = "  set {pos} of {len} [{bar:20}] {msg} {elapsed}";

/// Who watches a comparison.
pub(super) struct ProfileProgress {
    shown: Option<ProgressBar>,
    set: String,
    stage: Option<TrialStage>,
}

impl ProfileProgress {
    pub(super) fn new() -> ProfileProgress {
        let style = ProgressStyle::with_template(STYLE).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = || ProgressBar::new(0).with_style(style.progress_chars("=> "));
        ProfileProgress { shown: io::stderr().is_terminal().then(bar), set: String::new(), stage: None }
    }

    /// Leaves the screen as it was.
    pub(super) fn end(&self) {
        if let Some(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }
}

impl ProfileObserver for ProfileProgress {
    fn begins(&mut self, workloads: &[String], sharing: SharingStrategy, before: usize, of: usize) {
        self.set = format!("{}, {}", workloads.join(" + "), sharing.word());
        self.stage = None;
        if let Some(bar) = &self.shown {
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
            TrialStage::Starting => "starts",
            TrialStage::WarmingUp => "warms up",
            TrialStage::Measuring => "is measured",
        };
        if let Some(bar) = &self.shown {
            bar.set_message(format!("{} {words}", self.set));
        }
    }

    fn ended(&mut self, reason: Option<&str>) {
        let Some(reason) = reason else { return };
        let told = || output::message(&format!("{}: {reason}", self.set));
        match &self.shown {
            Some(bar) => bar.suspend(told),
            None => told(),
        }
    }
}

/// Also where the comparison fails, nothing of the bar is left.
impl Drop for ProfileProgress {
    fn drop(&mut self) {
        self.end();
    }
}
