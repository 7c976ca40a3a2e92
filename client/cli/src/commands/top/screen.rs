//! Draws the screen of `top`: devices above, jobs below, or the page of one job. It changes nothing, and
//! returns which parts of the lists are in sight.

use cohabit_client::types::{JobState, Time, counted};
use cohabit_console::printable_line;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span as TextSpan};
use ratatui::widgets::Paragraph;

use super::devices::{device_columns, device_rows};
use super::jobs::job_row;
use super::keys::{TopFocus, TopPage, TopPrompt, TopState, TopWindows};
use super::page::{draw_page, page_keys};
use super::scroll::RowWindow;
use super::text_table::{ColumnFit, TextCell, TextColumn, cut, width_of};
use super::view::{JobPage, TopView};

/// Columns that stay when the others move.
const PINNED: usize = 2;

/// The title and the headings of a table.
const TABLE_HEAD: u16 = 2;

/// What the keys do on the overview, the most useful first.
const KEYS: [&str; 8] =
    ["? help", "q quit", "Enter sheet", "l logs", "c cancel", "/ filter", "s sort", "Tab devices"];

/// Draws everything.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    view: &TopView,
    page: Option<&JobPage>,
    state: &TopState,
    now: Time,
) -> TopWindows {
    let warning = warning(view, now);
    let heights = [
        Constraint::Length(1),
        Constraint::Length(u16::from(warning.is_some())),
        Constraint::Fill(1),
        Constraint::Length(1),
    ];
    let [top, second, middle, bottom] = Layout::vertical(heights).areas(frame.area());
    frame.render_widget(Line::from(summary(view)).style(Modifier::BOLD), top);
    if let Some(warning) = warning {
        let style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
        frame.render_widget(Line::from(cut(&warning, second.width.into())).style(style), second);
    }
    let windows = match state.page {
        TopPage::Overview => draw_overview(frame, middle, view, state, now),
        TopPage::Sheet(_) | TopPage::Log { .. } | TopPage::Help => {
            draw_page(frame, middle, view, page, state)
        }
    };
    frame.render_widget(footer(view, state, bottom.width.into()), bottom);
    windows
}

/// Why the figures are old, or what keeps the head from its work.
fn warning(view: &TopView, now: Time) -> Option<String> {
    let problems = || (!view.head_problems.is_empty()).then(|| view.head_problems.join("; "));
    let warning = view.silence(now).or_else(|| problems().map(|problems| format!("warning: {problems}")))?;
    Some(printable_line(&warning).into_owned())
}

/// `head gpu1:7070   2 nodes   3 running   1 pending`
fn summary(view: &TopView) -> String {
    let count = |state| view.jobs.iter().filter(|job| job.state == state).count();
    format!(
        "head {}   {}   {} running   {} pending",
        printable_line(&view.head),
        counted(view.nodes.len(), "node", "nodes"),
        count(JobState::Running),
        count(JobState::Pending),
    )
}

/// The question that is open, what came of the last change, or what the keys do.
fn footer(view: &TopView, state: &TopState, width: usize) -> Line<'static> {
    let text = match (state.prompt, &state.message) {
        (TopPrompt::Filter, _) => {
            let tail = "_   Enter keeps it, Esc clears it";
            let filter = printable_line(&state.ordering.filter);
            format!("/{filter}{tail}")
        }
        (TopPrompt::Cancel(job), _) => {
            let of = view.job(job).map(|it| format!(" ({} of {})", it.name, it.user)).unwrap_or_default();
            let question = format!("Cancel job {job}? y: yes, any other key: no{of}");
            return Line::from(cut(&printable_line(&question), width)).style(Modifier::REVERSED);
        }
        (TopPrompt::None, Some(message)) => printable_line(message).into_owned(),
        (TopPrompt::None, None) => match state.page {
            TopPage::Overview => hints(&KEYS, width),
            TopPage::Sheet(_) | TopPage::Log { .. } | TopPage::Help => hints(page_keys(state.page), width),
        },
    };
    Line::from(cut(&text, width)).style(Modifier::DIM)
}

/// As many of the hints as fit; the help names all keys.
fn hints(keys: &[&str], width: usize) -> String {
    keys.iter().fold(String::new(), |text, key| match text.as_str() {
        "" => (*key).to_owned(),
        _ if width_of(&text) + 2 + width_of(key) <= width => format!("{text}  {key}"),
        _ => text,
    })
}

fn draw_overview(
    frame: &mut Frame<'_>,
    area: Rect,
    view: &TopView,
    state: &TopState,
    now: Time,
) -> TopWindows {
    let devices = device_rows(&view.nodes);
    let jobs = state.ordering.select(&view.jobs, view.at);
    let height = devices_height(area.height, devices.len(), jobs.len());
    let [upper, lower] = Layout::vertical([Constraint::Length(height), Constraint::Fill(1)]).areas(area);
    let dimmed = if view.silence(now).is_some() { Modifier::DIM } else { Modifier::empty() };
    let mut devices_part = TablePart {
        title: "DEVICES".to_owned(),
        has_focus: state.focus == TopFocus::Devices,
        window: RowWindow { rows: devices.len(), height: rows_in(upper) },
        first: 0,
        selected: None,
        skipped: state.skipped_columns,
        style: dimmed,
    };
    devices_part.first = devices_part.window.clamp(state.first_device);
    let shown: Vec<&[TextCell]> = devices_part.in_sight(&devices).map(Vec::as_slice).collect();
    let devices_after = devices_part.draw(frame, upper, &device_columns(), &shown);

    let window = RowWindow { rows: jobs.len(), height: rows_in(lower) };
    let first = window.reveal(state.first_job, state.selected_row);
    let jobs_part = TablePart {
        title: jobs_title(state, view.jobs.len()),
        has_focus: state.focus == TopFocus::Jobs,
        window,
        first,
        selected: state.selected.and_then(|id| jobs.iter().position(|job| job.id == id)),
        skipped: state.skipped_columns,
        style: dimmed,
    };
    let rows: Vec<Vec<TextCell>> = jobs_part.in_sight(&jobs).map(|job| job_row(job, view.at)).collect();
    let shown: Vec<&[TextCell]> = rows.iter().map(Vec::as_slice).collect();
    let jobs_after = jobs_part.draw(frame, lower, &state.ordering.columns(), &shown);
    let columns_after = match state.focus {
        TopFocus::Jobs => jobs_after,
        TopFocus::Devices => devices_after,
    };
    TopWindows { jobs: window, devices: devices_part.window, page: RowWindow::default(), columns_after }
}

/// The rows of a table in this area.
fn rows_in(area: Rect) -> usize {
    area.height.saturating_sub(TABLE_HEAD).into()
}

/// All devices where all jobs fit, too; else at most half of the height.
fn devices_height(height: u16, devices: usize, jobs: usize) -> u16 {
    let wanted = |rows: usize| u16::try_from(rows).unwrap_or(u16::MAX).saturating_add(TABLE_HEAD);
    // One row is for what stands there when there are no jobs.
    let left_by_jobs = height.saturating_sub(wanted(jobs.max(1)));
    wanted(devices).min(left_by_jobs.max(height / 2))
}

fn jobs_title(state: &TopState, all: usize) -> String {
    match state.ordering.filter.trim() {
        "" => "JOBS".to_owned(),
        filter => format!("JOBS with '{}' (of {all})", printable_line(filter)),
    }
}

/// A table and its place.
struct TablePart {
    title: String,
    has_focus: bool,
    window: RowWindow,
    first: usize,
    selected: Option<usize>,
    /// How many columns are to the left of the screen, if the table has the focus.
    skipped: usize,
    style: Modifier,
}

impl TablePart {
    /// The rows of a list that are in sight.
    fn in_sight<'a, T>(&self, rows: &'a [T]) -> impl Iterator<Item = &'a T> {
        rows.iter().skip(self.first).take(self.window.height)
    }

    /// Draws the table with the rows that are in sight; returns how many columns are to the right of it.
    fn draw(&self, frame: &mut Frame<'_>, area: Rect, columns: &[TextColumn], rows: &[&[TextCell]]) -> usize {
        let width = usize::from(area.width);
        let skipped = if self.has_focus { self.skipped } else { 0 };
        let fit = ColumnFit::new(columns, rows, width, (PINNED, skipped));
        let mut lines = vec![self.title_line(&fit, width), fit.heading(columns)];
        for (at, cells) in rows.iter().enumerate() {
            let is_selected = self.has_focus && self.selected == Some(self.first + at);
            let selection = if is_selected { Modifier::REVERSED } else { Modifier::empty() };
            lines.push(fit.row(cells).style(self.style | selection));
        }
        if self.window.rows == 0 {
            lines.push(Line::from("none").style(Modifier::DIM));
        }
        frame.render_widget(Paragraph::new(lines), area);
        fit.after
    }

    /// `JOBS 1-12 of 140, 128 below; 2 more columns: →`
    fn title_line(&self, fit: &ColumnFit, width: usize) -> Line<'static> {
        let rows = self.window.describe(self.first);
        let columns = match (fit.before, fit.after) {
            (0, 0) => String::new(),
            (0, after) => format!("; {}: →", counted(after, "more column", "more columns")),
            (before, 0) => format!("; {}: ←", counted(before, "more column", "more columns")),
            (before, after) => format!("; {} more columns: ← {before}, → {after}", before + after),
        };
        let title = TextSpan::styled(self.title.clone(), Modifier::BOLD);
        let room = width.saturating_sub(title.width() + 1);
        Line::from(vec![title, TextSpan::raw(" "), TextSpan::raw(cut(&(rows + &columns), room))])
    }
}

#[cfg(test)]
mod tests;
