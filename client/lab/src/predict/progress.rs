//! Shows how far a training is: one bar on a terminal, a line for each tenth of it anywhere else.

use std::io::{self, IsTerminal as _};

use cohabit_console::output;
use cohabit_predict::interference::Epoch;
use indicatif::{ProgressBar, ProgressStyle};

const STYLE: &str = "  {prefix:28} [{bar:30}] {human_pos}/{human_len} epochs {msg} {elapsed}";
/// So many lines are written of one model.
const LINES: usize = 10;

/// What shows it.
pub(super) enum TrainingProgress {
    Hidden,
    Terminal(ProgressBar),
    Lines,
}

impl TrainingProgress {
    /// Shown if that was asked for.
    pub(super) fn new(asked_for: bool) -> TrainingProgress {
        if !asked_for {
            return TrainingProgress::Hidden;
        }
        if !io::stderr().is_terminal() {
            return TrainingProgress::Lines;
        }
        let style = ProgressStyle::with_template(STYLE).unwrap_or_else(|_| ProgressStyle::default_bar());
        TrainingProgress::Terminal(ProgressBar::new(0).with_style(style.progress_chars("=> ")))
    }

    /// One more epoch is done.
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
        Some(held_back) => format!("loss {:.4}, held back {held_back:.4}", epoch.loss),
        None => format!("loss {:.4}", epoch.loss),
    }
}

/// Also where a training fails, nothing of the bar is left.
impl Drop for TrainingProgress {
    fn drop(&mut self) {
        if let TrainingProgress::Terminal(bar) = self {
            bar.finish_and_clear();
        }
    }
}
