//! Metrics as plots in a terminal: one for each metric, with a line for each job.

use std::fmt::Write as _;

use cohabit_client::types::{JobId, counted};
use cohabit_console::{Colour, Screen, format_number, printable_line};
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Color, Style};
use ratatui::symbols::Marker;
use ratatui::text::Line;
use ratatui::widgets::{Axis, Chart, Dataset, GraphType, LegendPosition, Widget as _};

use super::attempt_series::{AttemptSeries, names};

const HEIGHT: u16 = 16;
const USUAL_WIDTH: u16 = 80;
const LARGEST_WIDTH: u16 = 160;
const SMALLEST_WIDTH: u16 = 40;

/// The most plots that are drawn at once.
const MOST_PLOTS: usize = 6;

/// The most jobs in one plot.
const MOST_LINES: usize = 6;

/// Colours of the lines.
const COLOURS: [Color; MOST_LINES] =
    [Color::Blue, Color::Yellow, Color::Green, Color::Magenta, Color::Cyan, Color::Red];

/// One job's values of a metric: steps and finite values, and the steps of all others.
struct JobPoints {
    job: JobId,
    points: Vec<(f64, f64)>,
    odd: Vec<(u64, String)>,
}

/// The plots below each other.
pub(crate) fn plot(all: &[AttemptSeries], screen: Screen) -> String {
    let names = names(all);
    let plots = names.iter().take(MOST_PLOTS).map(|name| plot_one(name, &points(all, name), screen));
    let mut text = plots.collect::<Vec<_>>().join("\n");
    if names.len() > MOST_PLOTS {
        let others = names[MOST_PLOTS..].join(", ");
        let _ = writeln!(text, "\nnot plotted, choose with --metric: {}", printable_line(&others));
    }
    text
}

/// The attempts of a job form one line.
fn points(all: &[AttemptSeries], name: &str) -> Vec<JobPoints> {
    let mut jobs: Vec<JobPoints> = Vec::new();
    for AttemptSeries { rank, series } in all {
        let job = rank.attempt.job;
        if jobs.last().is_none_or(|it| it.job != job) {
            jobs.push(JobPoints { job, points: Vec::new(), odd: Vec::new() });
        }
        let Some(known) = jobs.last_mut() else { continue };
        for (step, value) in series.points(name) {
            match value.is_finite() {
                true => known.points.push((step as f64, value.0)),
                false => known.odd.push((step, value.to_string())),
            }
        }
    }
    jobs.retain(|job| !job.points.is_empty() || !job.odd.is_empty());
    jobs
}

fn plot_one(name: &str, jobs: &[JobPoints], screen: Screen) -> String {
    let (jobs, others) = jobs.split_at(jobs.len().min(MOST_LINES));
    let all = || jobs.iter().flat_map(|job| &job.points);
    let mut text = format!("{}\n", printable_line(name));
    if all().next().is_some() {
        let area = Rect::new(0, 0, width(screen), HEIGHT);
        let (steps, values) = (bounds(all().map(|it| it.0)), bounds(all().map(|it| it.1)));
        let datasets = jobs.iter().zip(&COLOURS).map(|(job, colour)| {
            let dataset = Dataset::default().data(&job.points).graph_type(GraphType::Line);
            let dataset = dataset.marker(Marker::Braille).style(Style::new().fg(*colour));
            if jobs.len() > 1 { dataset.name(Line::from(job.job.to_string())) } else { dataset }
        });
        let axis = |bounds: [f64; 2], label: fn(f64) -> String| {
            let labels = [bounds[0], f64::midpoint(bounds[0], bounds[1]), bounds[1]].map(label);
            Axis::default().bounds(bounds).labels(labels)
        };
        let chart = Chart::new(datasets.collect())
            .x_axis(axis(steps, |step| format!("{step:.0}")).title("step"))
            .y_axis(axis(values, format_number))
            .hidden_legend_constraints((Constraint::Fill(1), Constraint::Fill(1)))
            .legend_position(Some(LegendPosition::TopRight));
        let mut buffer = Buffer::empty(area);
        chart.render(area, &mut buffer);
        text.push_str(&buffer_text(&buffer, screen.colour));
    }
    for JobPoints { job, odd, .. } in jobs {
        if let Some((step, value)) = odd.first() {
            let more = if odd.len() > 1 { format!(", and {} more", odd.len() - 1) } else { String::new() };
            let _ = writeln!(text, "job {job}: {value} at step {step}{more}");
        }
    }
    if !others.is_empty() {
        let others = counted(others.len(), "more job is", "more jobs are");
        let _ = writeln!(text, "{others} not plotted: name the jobs to compare");
    }
    text
}

fn width(screen: Screen) -> u16 {
    screen.width.unwrap_or(USUAL_WIDTH).clamp(SMALLEST_WIDTH, LARGEST_WIDTH)
}

/// The least and the largest; a single value gets room on both sides.
fn bounds(values: impl Iterator<Item = f64> + Clone) -> [f64; 2] {
    let least = values.clone().fold(f64::INFINITY, f64::min);
    let largest = values.fold(f64::NEG_INFINITY, f64::max);
    let room = if least < largest { 0.0 } else { (least.abs() * 0.1).max(0.5) };
    [least - room, largest + room]
}

/// The rows of the buffer, with escape sequences where the colour changes if the screen shows colours.
fn buffer_text(buffer: &Buffer, colour: Colour) -> String {
    let mut text = String::new();
    for row in buffer.content().chunks(usize::from(buffer.area.width)) {
        let end = row.iter().rposition(|cell| cell.symbol() != " ").map_or(0, |last| last + 1);
        let mut present = None;
        for cell in &row[..end] {
            let known = COLOURS.iter().position(|known| *known == cell.fg).map(ansi_code);
            let wanted = known.filter(|_| colour == Colour::Shown);
            if wanted != present {
                let _ = write!(text, "\u{1b}[{}m", wanted.unwrap_or(0));
                present = wanted;
            }
            text.push_str(cell.symbol());
        }
        text.push_str(if present.is_some() { "\u{1b}[0m\n" } else { "\n" });
    }
    text
}

/// The number of the colour at this place in escape sequences.
const fn ansi_code(place: usize) -> u8 {
    [34, 33, 32, 35, 36, 31][place]
}
