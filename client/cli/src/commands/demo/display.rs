//! Shows running jobs: progress bars on a terminal, otherwise one line for each change.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _};
use std::time::Instant;

use cohabit_client::types::{JobId, JobRecord, JobState};
use cohabit_console::{CommandError, output};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::render::{metric_text, progress_text};

/// The display of running jobs.
pub(super) enum DemoDisplay {
    Bars(BTreeMap<JobId, ProgressBar>),
    ProgressLines(ProgressLines),
}

/// The lines printed so far.
pub(super) struct ProgressLines {
    started: Instant,
    names: BTreeMap<JobId, String>,
    printed: BTreeMap<JobId, PrintedProgress>,
}

/// A line is printed when one of these changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PrintedProgress {
    state: JobState,
    quarters: u64,
}

impl DemoDisplay {
    /// The display for jobs with these names; bars if stdout and stderr are terminals.
    pub(super) fn new(names: BTreeMap<JobId, String>) -> DemoDisplay {
        if io::stdout().is_terminal() && io::stderr().is_terminal() {
            return DemoDisplay::Bars(bars(&names));
        }
        DemoDisplay::ProgressLines(ProgressLines { started: Instant::now(), names, printed: BTreeMap::new() })
    }

    /// Shows the current state of a job.
    pub(super) fn show(&mut self, job: &JobRecord) -> Result<(), CommandError> {
        match self {
            DemoDisplay::Bars(bars) => {
                if let Some(bar) = bars.get(&job.id) {
                    set(bar, job);
                }
                Ok(())
            }
            DemoDisplay::ProgressLines(lines) => {
                lines.line_if_changed(job).map_or(Ok(()), |line| output::print_text(&line))
            }
        }
    }

    /// Stops drawing and leaves the bars on the screen.
    pub(super) fn end(&self) {
        if let DemoDisplay::Bars(bars) = self {
            bars.values().for_each(ProgressBar::abandon);
        }
    }
}

fn bars(names: &BTreeMap<JobId, String>) -> BTreeMap<JobId, ProgressBar> {
    let style = ProgressStyle::with_template("  {prefix:14} [{bar:30}] {pos:>5}/{len:5} {msg}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ");
    let all = MultiProgress::new();
    let bar = |name: &String| {
        let bar = all.add(ProgressBar::new(0).with_style(style.clone()).with_prefix(name.clone()));
        bar.set_message(JobState::Pending.word());
        bar
    };
    names.iter().map(|(id, name)| (*id, bar(name))).collect()
}

fn set(bar: &ProgressBar, job: &JobRecord) {
    if let Some(progress) = &job.progress {
        bar.set_length(progress.total.unwrap_or(progress.step));
        bar.set_position(progress.step);
    }
    bar.set_message(summary(job));
}

/// `RUNNING    loss 0.0412  4.2 s left`
fn summary(job: &JobRecord) -> String {
    let progress = job.progress.as_ref();
    let left = progress.filter(|_| job.state == JobState::Running).and_then(|progress| progress.remaining());
    let parts = [
        Some(format!("{:9}", job.state)),
        progress.and_then(metric_text),
        left.map(|left| format!("{left} left")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("  ")
}

impl ProgressLines {
    /// A line, if the state or the quarter of the progress changed.
    fn line_if_changed(&mut self, job: &JobRecord) -> Option<String> {
        let done =
            job.progress.as_ref().and_then(|progress| (progress.step * 4).checked_div(progress.total?));
        let current = PrintedProgress { state: job.state, quarters: done.unwrap_or(0) };
        let is_new = self.printed.insert(job.id, current) != Some(current);
        is_new.then(|| self.line(job))
    }

    fn line(&self, job: &JobRecord) -> String {
        let name = self.names.get(&job.id).map_or("", String::as_str);
        let progress = job.progress.as_ref().map_or(String::new(), progress_text);
        let line =
            format!("{:6.1} s  {name:14} {:9}  {progress}", self.started.elapsed().as_secs_f64(), job.state);
        line.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples::running;

    fn lines() -> ProgressLines {
        let names = [(running().id, "digits 0.01".to_owned())].into();
        ProgressLines { started: Instant::now(), names, printed: BTreeMap::new() }
    }

    #[test]
    fn a_line_is_printed_for_each_quarter_and_each_state() {
        let mut lines = lines();
        let at = |step, state| {
            let mut job = JobRecord { state, ..running() };
            if let Some(progress) = &mut job.progress {
                progress.step = step;
            }
            job
        };
        let mut is_printed = |step, state| lines.line_if_changed(&at(step, state)).is_some();
        assert!(is_printed(10, JobState::Running));
        assert!(!is_printed(249, JobState::Running));
        assert!(is_printed(250, JobState::Running));
        assert!(is_printed(250, JobState::Completed));
        assert!(!is_printed(250, JobState::Completed));
    }

    #[test]
    fn a_line_has_the_name_and_the_progress() {
        let line = lines().line(&running());
        assert!(line.contains("digits 0.01") && line.contains("42% 420/1000 loss 0.4123"), "{line}");
    }

    #[test]
    fn a_bar_shows_state_loss_and_remaining_time() {
        assert_eq!(summary(&running()), "RUNNING    loss 0.4123  3 min 52 s left");
    }
}
