//! How many jobs wait, and how many devices are held, over time.

use cohabit_console::CommandError;

use super::time_axis;
use crate::page::chart::{Axis, Curve, count_axis, curves};
use crate::page::palette;
use crate::simulate::result::{SimulationResult, SimulationResults};

/// Jobs that wait for devices.
pub(super) fn queue(outcomes: &SimulationResults) -> Result<String, CommandError> {
    chart(outcomes, "jobs that wait", None, SimulationResult::queued)
}

/// Devices that jobs hold.
pub(super) fn busy(outcomes: &SimulationResults) -> Result<String, CommandError> {
    chart(outcomes, "devices held", Some(outcomes.devices as f64), SimulationResult::busy)
}

/// Of the first seed.
fn chart(
    outcomes: &SimulationResults,
    label: &'static str,
    most: Option<f64>,
    counted: impl Fn(&SimulationResult) -> Vec<(f64, f64)>,
) -> Result<String, CommandError> {
    let first_runs = outcomes.by_policy().into_iter().filter_map(|(_, runs)| runs.first().copied());
    let of_series = |(place, run): (usize, &SimulationResult)| Curve {
        colour: palette::of_series(place),
        points: counted(run),
    };
    let lines: Vec<Curve> = first_runs.enumerate().map(of_series).collect();
    let points = || lines.iter().flat_map(|line| &line.points);
    let (end, highest) =
        points().fold((0.0, 0.0), |(end, highest), (at, count)| (at.max(end), count.max(highest)));
    if end <= 0.0 {
        return Ok(String::new());
    }
    let x = Axis {
        label: "time",
        range: 0.0..end,
        ticks: time_axis::times(0.0, end),
        write: time_axis::format_time,
    };
    curves(&x, &count_axis(label, most.unwrap_or(highest)), &lines, 280)
}
