//! How many jobs wait, and how many devices are held, over time.

use super::ticks;
use crate::commands::simulate::result::{Outcome, Outcomes};
use crate::failure::Failure;
use crate::page::chart::{Axis, Curve, counts, curves};
use crate::page::palette;

/// Jobs that wait for devices.
pub(super) fn queue(outcomes: &Outcomes) -> Result<String, Failure> {
    chart(outcomes, "jobs that wait", None, Outcome::queued)
}

/// Devices that jobs hold.
pub(super) fn busy(outcomes: &Outcomes) -> Result<String, Failure> {
    chart(outcomes, "devices held", Some(outcomes.devices as f64), Outcome::busy)
}

/// Of the first seed.
fn chart(
    outcomes: &Outcomes,
    label: &'static str,
    most: Option<f64>,
    counted: impl Fn(&Outcome) -> Vec<(f64, f64)>,
) -> Result<String, Failure> {
    let first_runs = outcomes.by_policy().into_iter().filter_map(|(_, runs)| runs.first().copied());
    let of_series =
        |(place, run): (usize, &Outcome)| Curve { colour: palette::of_series(place), points: counted(run) };
    let lines: Vec<Curve> = first_runs.enumerate().map(of_series).collect();
    let points = || lines.iter().flat_map(|line| &line.points);
    let (end, highest) =
        points().fold((0.0, 0.0), |(end, highest), (at, count)| (at.max(end), count.max(highest)));
    if end <= 0.0 {
        return Ok(String::new());
    }
    let x = Axis { label: "time", range: 0.0..end, ticks: ticks::times(0.0, end), write: ticks::written };
    curves(&x, &counts(label, most.unwrap_or(highest)), &lines, 280)
}
