//! The Gantt chart: one row per device, one bar per job that held it.
//!
//! Only the first devices of a cluster are recorded. With very many jobs, only the time around the longest
//! queue is shown.

use cohabit_types::counted;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use cohabit_console::CommandError;
use cohabit_sim::DeviceSpan;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::time_axis;
use crate::page::chart::{FONT, FOREGROUND, TEXT_SIZE, WIDTH, chart_error, svg};
use crate::simulate::result::SimulationResult;

/// More bars make the page large without showing more.
const MAX_BARS: usize = 2_500;
/// Narrower bars, as a fraction of the width, are not visible.
const MIN_BAR_WIDTH: f64 = 0.0004;
const ROW: i32 = 9;
const LEFT: i32 = 84;
const TOP: i32 = 8;
const BOTTOM: i32 = 30;
/// The golden ratio: hues this fraction of a turn apart are far from all earlier ones.
const GOLDEN: f64 = 0.618_033_988_749_895;

/// The chart and its caption.
pub(super) struct Gantt {
    pub(super) svg: String,
    pub(super) caption: String,
}

/// A machine and its devices that are shown.
struct Machine<'a> {
    name: &'a str,
    devices: Vec<&'a str>,
}

/// Draws the chart of one run; none if its devices were not recorded.
pub(super) fn chart(run: &SimulationResult) -> Result<Option<Gantt>, CommandError> {
    let Some(window) = window(run) else { return Ok(None) };
    let machines = machines(run.spans());
    let rows: BTreeMap<&str, i32> =
        machines.iter().flat_map(|machine| machine.devices.iter().copied()).zip(0..).collect();
    let narrowest = (window.end - window.start) * MIN_BAR_WIDTH;
    let bars = run.spans().iter().filter_map(|span| {
        let (from, to) = (seconds(span).start.max(window.start), seconds(span).end.min(window.end));
        let row = rows.get(span.device.as_str())?;
        (to - from > narrowest).then_some((*row, from..to, colour_of(span.job)))
    });
    let svg = draw_rows(&machines, &window, bars.collect())?;
    let all = run.spans().iter().map(|span| seconds(span).end).fold(0.0, f64::max);
    let part =
        if window.end - window.start < all { "around the longest queue" } else { "over the whole time" };
    let caption =
        format!("The first {}, {part}. Each job has one colour.", counted(rows.len(), "device", "devices"));
    Ok(Some(Gantt { svg, caption }))
}

fn seconds(span: &DeviceSpan) -> Range<f64> {
    span.from.as_secs_f64()..span.to.as_secs_f64()
}

fn machine_of(device: &str) -> &str {
    device.rsplit_once('-').map_or(device, |(machine, _)| machine)
}

/// The machines in numerical order.
fn machines(spans: &[DeviceSpan]) -> Vec<Machine<'_>> {
    let devices: BTreeSet<(usize, &str)> =
        spans.iter().map(|span| (span.device.len(), span.device.as_str())).collect();
    let mut machines: BTreeMap<(usize, &str), Vec<&str>> = BTreeMap::new();
    for (_, device) in devices {
        let name = machine_of(device);
        machines.entry((name.len(), name)).or_default().push(device);
    }
    machines.into_iter().map(|((_, name), devices)| Machine { name, devices }).collect()
}

/// The whole time, or the part around the longest queue that has at most MAX_BARS bars.
fn window(run: &SimulationResult) -> Option<Range<f64>> {
    let bars: Vec<Range<f64>> = run.spans().iter().map(seconds).collect();
    let end = bars.iter().map(|bar| bar.end).fold(0.0, f64::max);
    let busiest = run.queued().into_iter().max_by(|one, other| one.1.total_cmp(&other.1));
    let middle = busiest.map_or(end / 2.0, |(at, _)| at.min(end));
    let mut window = 0.0..end;
    while bars.iter().filter(|bar| bar.end > window.start && bar.start < window.end).count() > MAX_BARS {
        let half = (window.end - window.start) / 4.0;
        let start = (middle - half).clamp(0.0, end - 2.0 * half);
        window = start..start + 2.0 * half;
    }
    (end > 0.0).then_some(window)
}

fn draw_rows(
    machines: &[Machine<'_>],
    window: &Range<f64>,
    bars: Vec<(i32, Range<f64>, RGBColor)>,
) -> Result<String, CommandError> {
    let rows: i32 = machines.iter().map(|machine| machine.devices.len() as i32).sum();
    let bottom = TOP + rows * ROW;
    let width = f64::from(WIDTH as i32 - LEFT - 24);
    let across = |at: f64| LEFT + ((at - window.start) / (window.end - window.start) * width) as i32;
    svg((bottom + BOTTOM) as u32, |canvas| {
        for tick in time_axis::times(window.start, window.end) {
            let line = PathElement::new([(across(tick), TOP), (across(tick), bottom)], faint());
            canvas.draw(&line).map_err(chart_error)?;
            let style = text_style(HPos::Center, VPos::Top);
            canvas
                .draw_text(&time_axis::format_time(tick), &style, (across(tick), bottom + 8))
                .map_err(chart_error)?;
        }
        let mut row = 0;
        for machine in machines {
            let (top, height) = (TOP + row * ROW, machine.devices.len() as i32 * ROW);
            let style = text_style(HPos::Right, VPos::Center);
            canvas.draw_text(machine.name, &style, (LEFT - 8, top + height / 2)).map_err(chart_error)?;
            let line = PathElement::new([(LEFT, top), (LEFT + width as i32, top)], faint());
            canvas.draw(&line).map_err(chart_error)?;
            row += machine.devices.len() as i32;
        }
        for (row, time, colour) in bars {
            let top = TOP + row * ROW;
            let corners = [
                (across(time.start), top + 1),
                (across(time.end).max(across(time.start) + 1), top + ROW - 1),
            ];
            canvas.draw(&Rectangle::new(corners, colour.filled())).map_err(chart_error)?;
        }
        Ok(())
    })
}

/// Text in the colour of the page.
fn text_style(horizontal: HPos, vertical: VPos) -> TextStyle<'static> {
    TextStyle::from((FONT, TEXT_SIZE).into_font()).color(&FOREGROUND).pos(Pos::new(horizontal, vertical))
}

/// Lines in the colour of the page, fainter than text.
fn faint() -> ShapeStyle {
    FOREGROUND.mix(0.2).into()
}

/// The colour of a job. Consecutive numbers have distant colours.
fn colour_of(number: usize) -> RGBColor {
    let hue = (number as f64 * GOLDEN).fract() * 6.0;
    let lightness = [0.46, 0.56, 0.64][number % 3];
    let chroma = 0.5 * (1.0 - f64::abs(2.0 * lightness - 1.0));
    let middle = chroma * (1.0 - (hue % 2.0 - 1.0).abs());
    let (red, green, blue) = match hue as u8 {
        0 => (chroma, middle, 0.0),
        1 => (middle, chroma, 0.0),
        2 => (0.0, chroma, middle),
        3 => (0.0, middle, chroma),
        4 => (middle, 0.0, chroma),
        _ => (chroma, 0.0, middle),
    };
    let byte = |part: f64| ((part + lightness - chroma / 2.0) * 255.0).round() as u8;
    RGBColor(byte(red), byte(green), byte(blue))
}
