//! Waiting jobs and devices in use over time.

use cohabit_console::CommandError;

use super::time_axis;
use crate::page::chart::{Axis, Curve, count_axis, curves};
use crate::page::palette;
use crate::simulate::result::{SimulationResult, SimulationResults};

/// Draws the number of waiting jobs.
pub(super) fn queue(outcomes: &SimulationResults) -> Result<String, CommandError> {
    chart(outcomes, "waiting jobs", None, SimulationResult::queued)
}

/// Draws the number of devices in use.
pub(super) fn busy(outcomes: &SimulationResults) -> Result<String, CommandError> {
    chart(outcomes, "devices in use", Some(outcomes.devices as f64), SimulationResult::busy)
}

/// Draws a curve per policy, for the first seed.
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
