//! The distribution of completion times, over a logarithmic axis.

use cohabit_console::CommandError;

use super::time_axis;
use crate::page::chart::{Axis, Curve, curves};
use crate::page::palette;
use crate::simulate::result::SimulationResults;

/// More points per curve would not be visible.
const POINTS: usize = 500;
/// Shorter times are raised to this: they would only stretch the axis.
const SHORTEST_SECONDS: f64 = 0.01;

/// Draws the jobs of all seeds.
pub(super) fn chart(outcomes: &SimulationResults) -> Result<String, CommandError> {
    let times: Vec<Vec<f64>> = outcomes
        .by_policy()
        .into_iter()
        .map(|(_, runs)| sorted_powers(runs.iter().flat_map(|run| run.completion_times())))
        .collect();
    let ends = times.iter().flat_map(|times| [times.first(), times.last()]).flatten();
    let (low, high) = ends.fold((f64::MAX, f64::MIN), |(low, high), it| (low.min(*it), high.max(*it)));
    if low > high {
        return Ok(String::new());
    }
    let range = low.floor()..(high + 0.05).max(low.floor() + 1.0);
    let x = Axis {
        label: "time from submission to end",
        ticks: time_axis::logarithms(range.start, range.end),
        range,
        write: |power| time_axis::format_time(10_f64.powf(power)),
    };
    let y = Axis {
        label: "fraction of all jobs",
        range: 0.0..1.0,
        ticks: vec![0.0, 0.25, 0.5, 0.75, 1.0],
        write: |part| format!("{:.0}%", part * 100.0),
    };
    let of_series = |(place, times): (usize, &Vec<f64>)| Curve {
        colour: palette::of_series(place),
        points: cumulated(times),
    };
    curves(&x, &y, &times.iter().enumerate().map(of_series).collect::<Vec<_>>(), 340)
}

fn sorted_powers(seconds: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut powers: Vec<f64> = seconds.map(|it| it.max(SHORTEST_SECONDS).log10()).collect();
    powers.sort_unstable_by(f64::total_cmp);
    powers
}

/// The cumulative distribution, sampled at evenly spread points.
fn cumulated(sorted: &[f64]) -> Vec<(f64, f64)> {
    let count = sorted.len();
    let kept = count.min(POINTS);
    let point = |number: usize| {
        let rank = (number + 1) * count / kept;
        (sorted[rank - 1], rank as f64 / count as f64)
    };
    let start = sorted.first().map(|least| (*least, 0.0));
    start.into_iter().chain((0..kept).map(point)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distribution_ends_at_one() {
        assert_eq!(cumulated(&[1.0, 2.0]), [(1.0, 0.0), (1.0, 0.5), (2.0, 1.0)]);
        let many: Vec<f64> = (0..12_345).map(f64::from).collect();
        let points = cumulated(&many);
        assert_eq!((points.len(), points[500]), (501, (12_344.0, 1.0)));
        assert!(points.is_sorted());
        assert_eq!(cumulated(&[]), []);
    }
}
