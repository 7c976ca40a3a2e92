//! Draws the pages of `top` that fill the screen: the sheet of a job, its output, and the help.

use cohabit_client::types::{LogStream, counted};
use cohabit_console::printable_line;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use super::keys::{TopPage, TopState, TopWindows};
use super::log::TopLog;
use super::scroll::RowWindow;
use super::text_table::{cut, wrapped};
use super::view::{JobPage, TopView};

/// What the keys do.
const HELP: &str = "\
Up, Down, PageUp, PageDown, Home, End   move in the list of jobs, or in the table with the focus
Left, Right    show columns that do not fit
Tab            give the focus to the devices, or back to the jobs
/              list only jobs with these words in number, name, user, state, node or array entry
Esc            clear the filter; close a page
s              sort by the next of ID, NAME, USER, STATE, RUNTIME
r              reverse the order
Enter          show all of the selected job, and why it waits
l              follow the output of the selected job; Left and Right change the rank
c, k           cancel the selected job, after a question
?              this help
q              close a page; quit on the overview
Ctrl-C         quit

Figures are asked for every second. A line in red says when the head does not answer: then they are old.
The list has the jobs that have not ended; `cohabit list --all` has the others.";

/// What the keys do on a page, the most useful first.
pub(super) const fn page_keys(page: TopPage) -> &'static [&'static str] {
    match page {
        TopPage::Log { .. } => {
            &["q back", "Up/Down scroll", "End follow", "Left/Right rank", "Enter sheet", "c cancel"]
        }
        TopPage::Sheet(_) => &["q back", "Up/Down scroll", "l logs", "c cancel"],
        TopPage::Overview | TopPage::Help => &["q back", "Up/Down scroll"],
    }
}

pub(super) fn draw_page(
    frame: &mut Frame<'_>,
    area: Rect,
    view: &TopView,
    page: Option<&JobPage>,
    state: &TopState,
) -> TopWindows {
    let [head, body] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    let width = usize::from(area.width);
    let lines = page_lines(page, state, width);
    let window = RowWindow { rows: lines.len(), height: body.height.into() };
    let first = if state.is_following { window.last_first() } else { window.clamp(state.first_line) };
    let title = title(view, page, state, &describe_lines(window, first));
    frame.render_widget(Line::from(cut(&title, width)).style(Modifier::BOLD), head);
    let shown: Vec<Line<'_>> = lines.into_iter().skip(first).take(window.height).collect();
    frame.render_widget(Paragraph::new(shown), body);
    TopWindows { page: window, ..state.windows }
}

fn describe_lines(window: RowWindow, first: usize) -> String {
    match window.rows <= window.height {
        true => counted(window.rows, "line", "lines"),
        false => format!("lines {}", window.describe(first)),
    }
}

/// What the page is, and which lines of it are in sight.
fn title(view: &TopView, page: Option<&JobPage>, state: &TopState, lines: &str) -> String {
    let name = |id| match view.job(id) {
        Some(job) => format!(" ({} of {})", printable_line(&job.name), printable_line(&job.user)),
        None => String::new(),
    };
    match (state.page, page) {
        (TopPage::Sheet(job), _) => format!("JOB {job}: {lines}{}", name(job)),
        (TopPage::Log { job, rank }, Some(JobPage::Log(log))) => {
            let attempt = if log.attempt > 0 { format!(", attempt {}", log.attempt) } else { String::new() };
            let following = following(log, state);
            format!("OUTPUT of job {job}, rank {rank}{attempt}, {following}, {lines}{}", name(job))
        }
        (TopPage::Log { job, rank }, _) => format!("OUTPUT of job {job}, rank {rank}{}", name(job)),
        (TopPage::Help | TopPage::Overview, _) => format!("KEYS: {lines}"),
    }
}

fn following(log: &TopLog, state: &TopState) -> &'static str {
    match (log.end.is_some(), state.is_following) {
        (true, _) => "ended",
        (false, true) => "following",
        (false, false) => "paused (End follows)",
    }
}

/// The lines of a page, in lines of this width.
fn page_lines(page: Option<&JobPage>, state: &TopState, width: usize) -> Vec<Line<'static>> {
    match (state.page, page) {
        (TopPage::Sheet(job), Some(JobPage::Sheet(of, lines))) if *of == job => {
            lines.iter().flat_map(|line| plain(line, width)).collect()
        }
        (TopPage::Log { job, rank }, Some(JobPage::Log(log))) if (log.job, log.rank) == (job, rank) => {
            log_lines(log, width)
        }
        (TopPage::Help | TopPage::Overview, _) => HELP.lines().flat_map(|line| plain(line, width)).collect(),
        (TopPage::Sheet(_) | TopPage::Log { .. }, _) => vec![Line::from("waiting for the head")],
    }
}

fn plain(text: &str, width: usize) -> impl Iterator<Item = Line<'static>> {
    wrapped(&printable_line(text), width).into_iter().map(Line::from)
}

/// The output; that of stderr is yellow.
fn log_lines(log: &TopLog, width: usize) -> Vec<Line<'static>> {
    let remark = |text: String| {
        let lines = wrapped(&printable_line(&text), width).into_iter();
        lines.map(|line| Line::from(line).style(Modifier::DIM)).collect::<Vec<_>>()
    };
    let mut lines = Vec::new();
    if log.forgotten > 0 {
        let count = counted(log.forgotten, "older line is", "older lines are");
        lines.extend(remark(format!("[{count} not kept here: `cohabit logs {}` prints all]", log.job)));
    }
    for (stream, text) in log.lines() {
        let color = match stream {
            LogStream::Stdout => Color::Reset,
            LogStream::Stderr => Color::Yellow,
        };
        lines
            .extend(wrapped(&text, width).into_iter().map(|line| Line::from(line).style(Style::from(color))));
    }
    if let Some(end) = &log.end {
        lines.extend(remark(format!("[{end}]")));
    }
    lines
}
