//! What keys do on the screen of `top`: a state machine that draws nothing and asks nobody.
//!
//! [`TopState::press`] changes what is shown, and returns what has to be done elsewhere.

#![expect(clippy::wildcard_enum_match_arm, reason = "most keys of a keyboard do nothing here")]

use cohabit_client::types::JobId;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::jobs::JobOrdering;
use super::scroll::{RowWindow, ScrollStep};

/// The longest filter, in characters.
const LONGEST_FILTER: usize = 200;

/// What fills the screen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum TopPage {
    /// Devices and jobs.
    #[default]
    Overview,
    /// What is known of a job.
    Sheet(JobId),
    /// The output of a rank of a job.
    Log { job: JobId, rank: u32 },
    /// What the keys do.
    Help,
}

/// What the next keys answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum TopPrompt {
    #[default]
    None,
    /// The filter, which is being typed.
    Filter,
    /// Whether to cancel this job.
    Cancel(JobId),
}

/// Which table of the overview the arrow keys move in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum TopFocus {
    #[default]
    Jobs,
    Devices,
}

/// What has to be done for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TopAction {
    Quit,
    /// Another page is shown: ask for what it needs.
    Open(TopPage),
    Cancel(JobId),
}

/// The lists as they were last drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TopWindows {
    pub(super) jobs: RowWindow,
    pub(super) devices: RowWindow,
    /// The lines of the sheet, the output or the help.
    pub(super) page: RowWindow,
    /// How many columns of the table with the focus are to the right of the screen.
    pub(super) columns_after: usize,
}

/// What the user has chosen to see.
#[derive(Debug, Default)]
pub(super) struct TopState {
    pub(super) page: TopPage,
    pub(super) prompt: TopPrompt,
    pub(super) focus: TopFocus,
    pub(super) ordering: JobOrdering,
    /// The selected job and its row; the job moves with the order of the list.
    pub(super) selected: Option<JobId>,
    pub(super) selected_row: usize,
    /// The first rows that are shown.
    pub(super) first_job: usize,
    pub(super) first_device: usize,
    pub(super) first_line: usize,
    /// Whether the output is followed: its last line stays in sight.
    pub(super) is_following: bool,
    /// How many columns behind the pinned ones are to the left of the screen.
    pub(super) skipped_columns: usize,
    /// What came of the last change.
    pub(super) message: Option<String>,
    pub(super) windows: TopWindows,
}

impl TopState {
    /// Takes over a new list of jobs: the selected job stays selected, or the one that is in its row now.
    pub(super) fn follow_selection(&mut self, jobs: &[JobId]) {
        let row = self.selected.and_then(|job| jobs.iter().position(|id| *id == job));
        self.selected_row = row.unwrap_or(self.selected_row).min(jobs.len().saturating_sub(1));
        self.selected = jobs.get(self.selected_row).copied();
        self.first_job = self.windows.jobs.reveal(self.first_job, self.selected_row);
    }

    /// Handles a key, with the jobs in the order in which they are listed.
    pub(super) fn press(&mut self, key: KeyEvent, jobs: &[JobId]) -> Option<TopAction> {
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return Some(TopAction::Quit);
        }
        match self.prompt {
            TopPrompt::Filter => {
                self.edit_filter(key.code);
                None
            }
            TopPrompt::Cancel(job) => self.confirm_cancel(key.code, job),
            TopPrompt::None => {
                self.message = None;
                match self.page {
                    TopPage::Overview => self.press_on_overview(key.code, jobs),
                    TopPage::Sheet(_) | TopPage::Log { .. } | TopPage::Help => self.press_on_page(key.code),
                }
            }
        }
    }

    fn edit_filter(&mut self, key: KeyCode) {
        let filter = &mut self.ordering.filter;
        match key {
            KeyCode::Char(letter) if filter.chars().count() < LONGEST_FILTER && !letter.is_control() => {
                filter.push(letter);
            }
            KeyCode::Backspace => _ = filter.pop(),
            KeyCode::Enter => self.prompt = TopPrompt::None,
            KeyCode::Esc => {
                filter.clear();
                self.prompt = TopPrompt::None;
            }
            _ => {}
        }
    }

    /// Only `y` cancels: any other key keeps the job.
    fn confirm_cancel(&mut self, key: KeyCode, job: JobId) -> Option<TopAction> {
        self.prompt = TopPrompt::None;
        match key {
            KeyCode::Char('y' | 'Y') => Some(TopAction::Cancel(job)),
            _ => {
                self.message = Some(format!("job {job} is not cancelled"));
                None
            }
        }
    }

    fn press_on_overview(&mut self, key: KeyCode, jobs: &[JobId]) -> Option<TopAction> {
        if let Some(step) = ScrollStep::of_key(key) {
            self.step(step, jobs);
            return None;
        }
        match key {
            KeyCode::Char('q') => return Some(TopAction::Quit),
            KeyCode::Char('?') => return Some(self.open(TopPage::Help)),
            KeyCode::Enter => return self.selected.map(|job| self.open(TopPage::Sheet(job))),
            KeyCode::Char('l') => return self.selected.map(|job| self.open_log(job, 0)),
            KeyCode::Char('k' | 'c') => self.ask_to_cancel(self.selected),
            KeyCode::Char('/') => self.prompt = TopPrompt::Filter,
            KeyCode::Char('s') => self.ordering.column = self.ordering.column.next(),
            KeyCode::Char('r') => self.ordering.is_descending = !self.ordering.is_descending,
            KeyCode::Esc => self.ordering.filter.clear(),
            KeyCode::Tab | KeyCode::BackTab => {
                self.focus = match self.focus {
                    TopFocus::Jobs => TopFocus::Devices,
                    TopFocus::Devices => TopFocus::Jobs,
                };
                self.skipped_columns = 0;
            }
            KeyCode::Right if self.windows.columns_after > 0 => self.skipped_columns += 1,
            KeyCode::Left => self.skipped_columns = self.skipped_columns.saturating_sub(1),
            _ => {}
        }
        None
    }

    fn step(&mut self, step: ScrollStep, jobs: &[JobId]) {
        match self.focus {
            TopFocus::Devices => self.first_device = self.windows.devices.scroll(self.first_device, step),
            TopFocus::Jobs => {
                let window = RowWindow { rows: jobs.len(), ..self.windows.jobs };
                self.selected_row = window.select(self.selected_row, step);
                self.selected = jobs.get(self.selected_row).copied();
            }
        }
    }

    fn press_on_page(&mut self, key: KeyCode) -> Option<TopAction> {
        if let Some(step) = ScrollStep::of_key(key) {
            let window = self.windows.page;
            let first = if self.is_following { window.last_first() } else { self.first_line };
            self.first_line = window.scroll(first, step);
            self.is_following =
                matches!(self.page, TopPage::Log { .. }) && self.first_line == window.last_first();
            return None;
        }
        match (key, self.page) {
            (KeyCode::Char('q') | KeyCode::Esc, _) => return Some(self.open(TopPage::Overview)),
            (KeyCode::Char('l'), TopPage::Sheet(job)) => return Some(self.open_log(job, 0)),
            (KeyCode::Enter, TopPage::Log { job, .. }) => return Some(self.open(TopPage::Sheet(job))),
            (KeyCode::Char('k' | 'c'), TopPage::Sheet(job) | TopPage::Log { job, .. }) => {
                self.ask_to_cancel(Some(job));
            }
            (KeyCode::Right, TopPage::Log { job, rank }) => {
                return Some(self.open_log(job, rank.saturating_add(1)));
            }
            (KeyCode::Left, TopPage::Log { job, rank }) if rank > 0 => {
                return Some(self.open_log(job, rank - 1));
            }
            _ => {}
        }
        None
    }

    fn open_log(&mut self, job: JobId, rank: u32) -> TopAction {
        let action = self.open(TopPage::Log { job, rank });
        self.is_following = true;
        action
    }

    fn open(&mut self, page: TopPage) -> TopAction {
        self.page = page;
        self.first_line = 0;
        self.is_following = false;
        self.windows.page = RowWindow::default();
        TopAction::Open(page)
    }

    fn ask_to_cancel(&mut self, job: Option<JobId>) {
        if let Some(job) = job {
            self.prompt = TopPrompt::Cancel(job);
        }
    }
}

#[cfg(test)]
mod tests;
