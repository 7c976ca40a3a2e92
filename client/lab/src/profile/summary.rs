//! Tables of the results: one row per way of sharing, or one per member of each set.

use cohabit_console::{Screen, format_number, table};
use cohabit_profiler::{ProfileReport, ProfileRow, SetSlowdowns, SharingSummary, summaries};
use cohabit_types::Bytes;

/// One row per way of sharing; if nothing has been shared yet, one row per workload.
pub(super) fn by_sharing(report: &ProfileReport, screen: Screen) -> String {
    let summaries = summaries(&report.rows);
    if summaries.is_empty() {
        return by_member(report, screen);
    }
    let headings =
        ["SHARING", "SETS", "INFEASIBLE", "MEAN SLOWDOWN", "THROUGHPUT", "BEST PAIR", "WORST PAIR"];
    let mut table = table::table(&headings, screen);
    summaries.iter().for_each(|summary| _ = table.add_row(cells(summary)));
    table::text(&table)
}

fn cells(summary: &SharingSummary) -> [String; 7] {
    [
        summary.sharing.word().to_owned(),
        summary.feasible.to_string(),
        summary.infeasible.to_string(),
        summary.mean_slowdown.map_or(String::new(), times),
        summary.mean_throughput.map_or(String::new(), times),
        summary.best_pair.as_ref().map_or(String::new(), pair),
        summary.worst_pair.as_ref().map_or(String::new(), pair),
    ]
}

/// `a + b 1.60 x`: the workloads and their combined throughput.
fn pair(pair: &SetSlowdowns) -> String {
    format!("{} {}", pair.workloads.join(" + "), times(pair.throughput()))
}

fn times(ratio: f64) -> String {
    format!("{ratio:.2} x")
}

/// One row per member of each set.
pub(super) fn by_member(report: &ProfileReport, screen: Screen) -> String {
    let headings =
        ["SET", "SHARING", "WORKLOAD", "STEPS/S", "SPREAD", "SLOWDOWN", "MEMORY", "UTILISATION", "FEASIBLE"];
    let mut table = table::table(&headings, screen);
    report.rows.iter().for_each(|row| _ = table.add_row(member_cells(row)));
    table::text(&table)
}

fn member_cells(row: &ProfileRow) -> [String; 9] {
    let percent = |part: Option<f64>| part.map_or(String::new(), |part| format!("{:.1}%", 100.0 * part));
    let slowdown = row.solo.rate.zip(row.together.rate).map(|(solo, together)| solo / together);
    [
        row.set.to_string(),
        row.sharing.word().to_owned(),
        row.workload.clone(),
        row.together.rate.map_or(String::new(), format_number),
        percent(row.together.spread),
        slowdown.map_or(String::new(), times),
        row.together.memory.map_or(String::new(), |bytes| Bytes(bytes).to_string()),
        percent(row.together.utilization),
        if row.feasible { "yes" } else { "no" }.to_owned(),
    ]
}
