//! Metrics as a table: the first, last, least and largest value of each.

use cohabit_client::types::MetricValue;
use cohabit_console::{Screen, format_number, table};
use comfy_table::{Cell, Color, Row};

use super::AttemptSeries;

/// A row for each attempt and metric.
pub(crate) fn summary(all: &[AttemptSeries], screen: Screen) -> String {
    let headings = ["JOB", "ATTEMPT", "METRIC", "REPORTS", "FIRST", "LAST", "MIN", "MAX", "LAST STEP"];
    let mut lines = table::table(&headings, screen);
    for AttemptSeries { rank, series } in all {
        for name in &series.names {
            let points: Vec<(u64, MetricValue)> = series.points(name).collect();
            let (Some((_, first)), Some((step, last))) = (points.first(), points.last()) else { continue };
            let finite = || points.iter().map(|(_, value)| value.0).filter(|value| value.is_finite());
            let mut row = Row::new();
            row.add_cell(table::cell(rank.attempt.job))
                .add_cell(table::cell(rank.attempt.attempt))
                .add_cell(table::cell(name))
                .add_cell(table::cell(points.len()))
                .add_cell(value(*first))
                .add_cell(value(*last))
                .add_cell(bound(finite().reduce(f64::min)))
                .add_cell(bound(finite().reduce(f64::max)))
                .add_cell(table::cell(step));
            lines.add_row(row);
        }
    }
    table::text(&lines)
}

/// In red if it is no finite number.
fn value(value: MetricValue) -> Cell {
    match value.is_finite() {
        true => table::cell(format_number(value.0)),
        false => table::cell(value).fg(Color::Red),
    }
}

fn bound(value: Option<f64>) -> Cell {
    table::cell(value.map_or(String::new(), format_number))
}
