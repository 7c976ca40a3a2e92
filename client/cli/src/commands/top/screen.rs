//! The screen of `top`: devices above, jobs below. It draws a view and does nothing else.

use cohabit_client::types::{DeviceKind, DeviceRecord, Health, JobRecord, JobState, NodeRecord, Time};
use cohabit_console::printable_line;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Paragraph, Row, Table};

use crate::render::expected_times::eta;
use crate::render::job_cells::{detail, runtime};
use crate::render::nodes_table::per_cent;
use crate::render::short_name::short_name;

/// The data on the screen.
pub(super) struct TopView {
    pub(super) head: String,
    pub(super) at: Time,
    /// What keeps the head from its work.
    pub(super) head_problems: Vec<String>,
    pub(super) nodes: Vec<NodeRecord>,
    pub(super) jobs: Vec<JobRecord>,
}

/// Width in cells of the bar that shows how much of a device is in use.
const BAR: usize = 10;

/// Width of the column of names.
const NAME: u16 = 18;

pub(super) fn draw(frame: &mut Frame<'_>, view: &TopView) {
    let devices: usize = view.nodes.iter().map(|node| node.devices.len().max(1)).sum();
    let heights = [
        Constraint::Length(2),
        Constraint::Max(u16::try_from(devices).unwrap_or(u16::MAX).saturating_add(2)),
        Constraint::Fill(1),
    ];
    let [top, middle, bottom] = Layout::vertical(heights).areas(frame.area());
    frame.render_widget(headline(view), top);
    frame.render_widget(devices_table(&view.nodes), middle);
    frame.render_widget(jobs_table(view), bottom);
}

/// The summary, and below it what keeps the head from its work, or nothing.
fn headline(view: &TopView) -> Paragraph<'static> {
    let problems = (!view.head_problems.is_empty()).then(|| view.head_problems.join("; "));
    let warning = problems.map(|it| format!("warning: {}", printable_line(&it))).unwrap_or_default();
    let warning = Line::from(warning).style(Style::from(Color::Red));
    Paragraph::new(vec![Line::from(summary(view)).style(Modifier::BOLD), warning])
}

/// `head gpu1:7070   2 nodes   3 running   1 pending   q quits`
fn summary(view: &TopView) -> String {
    let count = |state| view.jobs.iter().filter(|job| job.state == state).count();
    format!(
        "head {}   {} nodes   {} running   {} pending   q quits",
        view.head,
        view.nodes.len(),
        count(JobState::Running),
        count(JobState::Pending),
    )
}

fn devices_table(nodes: &[NodeRecord]) -> Table<'_> {
    let rows = nodes.iter().flat_map(|node| node.devices.iter().map(move |device| device_row(node, device)));
    let widths = [16, 12, 24, 22, BAR as u16 + 8, 9, 18, 20].map(Constraint::Max);
    let headings = ["NODE", "STATE", "DEVICE", "KIND", "IN USE", "UTILIZED", "MEMORY", "JOBS"];
    Table::new(rows, widths).header(heading(headings))
}

fn device_row(node: &NodeRecord, device: &DeviceRecord) -> Row<'static> {
    let used = device.used.as_f64();
    let full = (used * BAR as f64).round() as usize;
    let jobs = device.jobs.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let reading = device.telemetry.as_ref().map(|it| &it.reading);
    let cells = [
        node.name.clone(),
        state(node, device),
        device.device.id.to_string(),
        kind(device),
        format!("{:·<BAR$} {:.0}%", "█".repeat(full.min(BAR)), used * 100.0),
        reading.and_then(|it| it.utilization).map_or(String::new(), per_cent),
        memory(device),
        jobs,
    ];
    Row::new(cells.map(|text| printable_line(&text).into_owned()))
}

/// The model; the mark of a simulated GPU is short, so that it fits into the column.
fn kind(device: &DeviceRecord) -> String {
    match device.device.kind {
        DeviceKind::Gpu | DeviceKind::Host => device.device.model.clone(),
        DeviceKind::Fake => format!("{} (sim)", device.device.model),
    }
}

/// The state of the node, unless its device is unhealthy.
fn state(node: &NodeRecord, device: &DeviceRecord) -> String {
    let health = &device.device.condition.health;
    match health {
        Health::Well => node.state.word().to_owned(),
        Health::Recovering(_) | Health::Fenced(_) => health.words().0.to_uppercase(),
    }
}

/// Used and total memory if the driver reports it, otherwise the total.
fn memory(device: &DeviceRecord) -> String {
    let held = device.telemetry.as_ref().and_then(|it| it.reading.memory_used);
    match (held, device.device.memory) {
        (Some(held), Some(all)) => format!("{held}/{all}"),
        (None, Some(all)) => all.to_string(),
        (_, None) => String::new(),
    }
}

fn jobs_table(view: &TopView) -> Table<'_> {
    let rows = view.jobs.iter().map(|job| job_row(job, view.at));
    let widths = [8, NAME, 10, 11, 12, 12, 14].map(Constraint::Max).into_iter().chain([Constraint::Fill(1)]);
    let headings = ["ID", "NAME", "USER", "STATE", "RUNTIME", "ETA", "NODE", "DETAIL"];
    Table::new(rows, widths).header(heading(headings))
}

fn job_row(job: &JobRecord, now: Time) -> Row<'_> {
    let text =
        |span: Option<cohabit_client::types::Span>| span.map_or(String::new(), |span| span.to_string());
    Row::new([
        Cell::from(job.id.to_string()),
        Cell::from(short_name(&job.name, usize::from(NAME))),
        Cell::from(printable_line(&job.user)),
        Cell::from(job.state.word()).style(Style::from(colour(job.state))),
        Cell::from(text(runtime(job, now))),
        Cell::from(eta(job, now)),
        Cell::from(printable_line(&job.nodes().join(",")).into_owned()),
        Cell::from(printable_line(&detail(job, now)).into_owned()),
    ])
}

const fn colour(state: JobState) -> Color {
    match state {
        JobState::Running | JobState::Completing => Color::Blue,
        JobState::Pending
        | JobState::Held
        | JobState::Completed
        | JobState::Failed
        | JobState::Cancelled
        | JobState::Timeout
        | JobState::NodeFail
        | JobState::OutOfMemory
        | JobState::Preempted => Color::Reset,
    }
}

fn heading<const N: usize>(words: [&'static str; N]) -> Row<'static> {
    Row::new(words).style(Modifier::DIM)
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::render::hostile_text::{self, assert_printable};
    use crate::render::samples::{array, at, nodes, pending, running};

    fn drawn(width: u16, height: u16) -> String {
        draw_records(width, height, nodes(), vec![array(), running(), pending()])
    }

    fn draw_records(width: u16, height: u16, nodes: Vec<NodeRecord>, jobs: Vec<JobRecord>) -> String {
        draw_view(width, height, &view_of(nodes, jobs))
    }

    fn view_of(nodes: Vec<NodeRecord>, jobs: Vec<JobRecord>) -> TopView {
        TopView { head: "gpu1:7070".into(), at: at(100), head_problems: Vec::new(), nodes, jobs }
    }

    fn draw_view(width: u16, height: u16, view: &TopView) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, view)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn the_screen_shows_devices_and_jobs() {
        insta::assert_snapshot!("top", drawn(120, 14));
    }

    #[test]
    fn the_screen_says_what_keeps_the_head_from_its_work() {
        let head_problems = vec!["the journal cannot be written: \u{202e}disk full".to_owned()];
        let view = TopView { head_problems, ..view_of(nodes(), vec![running()]) };
        let drawn = draw_view(120, 14, &view);
        let second = drawn.lines().nth(1).unwrap();
        assert!(second.contains("warning: the journal cannot be written: \\u{202e}disk full"), "{second}");
    }

    #[test]
    fn a_long_name_leaves_the_other_columns_their_room() {
        let named = |name: &str| JobRecord { name: name.into(), ..running() };
        let drawn = draw_records(120, 14, nodes(), vec![named("a-name-that-is-longer-than-the-column")]);
        assert!(drawn.contains("a-name-that-is-lo… ada"), "{drawn}");
    }

    #[test]
    fn a_small_screen_can_be_drawn() {
        for (width, height) in [(1, 1), (20, 3), (300, 2)] {
            assert!(!drawn(width, height).is_empty());
        }
    }

    #[test]
    fn the_screen_shows_codes_of_characters_that_are_not_visible() {
        assert_printable(|text| {
            let nodes = nodes().into_iter().map(|it| hostile_text::node(it, text)).collect();
            draw_records(180, 14, nodes, vec![hostile_text::job(running(), text)])
        });
    }
}
