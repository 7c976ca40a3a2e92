//! The progress of a training: a bar on a terminal, otherwise one line per tenth.

use std::io::{self, IsTerminal as _};

use cohabit_console::output;
use cohabit_predict::interference::Epoch;
use indicatif::{ProgressBar, ProgressStyle};

const STYLE: &str = "  {prefix:28} [{bar:30}] {human_pos}/{human_len} epochs {msg} {elapsed}";
/// Number of lines printed per model.
const LINES: usize = 10;

/// Shows the progress to the user.
pub(super) enum TrainingProgress {
    Hidden,
    Terminal(ProgressBar),
    Lines,
}

impl TrainingProgress {
    /// Shows nothing unless `enabled`.
    pub(super) fn new(enabled: bool) -> TrainingProgress {
        if !enabled {
            return TrainingProgress::Hidden;
        }
        if !io::stderr().is_terminal() {
            return TrainingProgress::Lines;
        }
        let style = ProgressStyle::with_template(STYLE).unwrap_or_else(|_| ProgressStyle::default_bar());
        TrainingProgress::Terminal(ProgressBar::new(0).with_style(style.progress_chars("=> ")))
    }

    /// Shows a finished epoch.
    pub(super) fn show(&self, what: &str, epoch: &Epoch) {
        match self {
            TrainingProgress::Hidden => {}
            TrainingProgress::Terminal(bar) => {
                bar.set_length(epoch.of as u64);
                bar.set_position(epoch.epoch as u64);
                bar.set_prefix(what.to_owned());
                bar.set_message(losses(epoch));
            }
            TrainingProgress::Lines => {
                if epoch.epoch.is_multiple_of(epoch.of.div_ceil(LINES).max(1)) {
                    output::print_message(&format!(
                        "{what}: epoch {} of {}, {}",
                        epoch.epoch,
                        epoch.of,
                        losses(epoch)
                    ));
                }
            }
        }
    }
}

fn losses(epoch: &Epoch) -> String {
    match epoch.held_back_loss {
        Some(held_back) => format!("loss {:.4}, validation {held_back:.4}", epoch.loss),
        None => format!("loss {:.4}", epoch.loss),
    }
}

/// Removes the bar if the training fails, too.
impl Drop for TrainingProgress {
    fn drop(&mut self) {
        if let TrainingProgress::Terminal(bar) = self {
            bar.finish_and_clear();
        }
    }
}
