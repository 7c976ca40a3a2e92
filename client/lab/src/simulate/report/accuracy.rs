//! The table of estimation errors.

use std::fmt::Write as _;

use cohabit_sim::{AccuracyStats, EstimateErrors};

use crate::page::html::escape_html;
use crate::simulate::result::SimulationResults;

/// The errors of every policy with the first seed; empty if nothing was estimated.
pub(super) fn table(outcomes: &SimulationResults) -> String {
    let mut rows = String::new();
    for (policy, runs) in outcomes.by_policy() {
        let Some(accuracy) = runs.first().map(|run| &run.evaluated.estimates) else { continue };
        let kinds = [
            ("all jobs", &accuracy.all),
            ("of known groups", &accuracy.recurring),
            ("of new groups", &accuracy.first_seen),
        ];
        for (kind, comparison) in kinds.into_iter().filter(|(_, comparison)| comparison.jobs > 0) {
            // Writing to a string cannot fail.
            let _ = writeln!(
                rows,
                "<tr><th>{}</th><td>{kind}</td>{}</tr>",
                escape_html(policy),
                cells(comparison)
            );
        }
    }
    if rows.is_empty() {
        return rows;
    }
    let headings = [
        "Policy",
        "Jobs",
        "Number",
        "Estimated",
        "Within a factor of 2",
        "Median error",
        "Mean error",
        "Estimate ÷ actual time (5th, 50th, 95th percentile)",
    ];
    let headings = headings.map(|heading| format!("<th>{heading}</th>")).concat();
    format!(
        "<div class=\"wide\"><table><thead><tr>{headings}</tr></thead><tbody>\n{rows}</tbody></table></div>"
    )
}

fn cells(comparison: &AccuracyStats) -> String {
    let counts = format!("<td>{}</td><td>{}</td>", comparison.jobs, comparison.estimated);
    let errors = comparison.errors.as_ref().map_or("<td></td>".repeat(4), |errors| {
        let EstimateErrors { mape, median_relative_error, within_factor_2, log_ratio } = errors;
        let ratios = [log_ratio.p5, log_ratio.p50, log_ratio.p95].map(|it| format!("{:.2}", it.exp()));
        format!(
            "<td>{:.1}%</td><td>{:.1}%</td><td>{:.1}%</td><td>{}</td>",
            within_factor_2 * 100.0,
            median_relative_error * 100.0,
            mape * 100.0,
            ratios.join(" · ")
        )
    });
    counts + &errors
}
