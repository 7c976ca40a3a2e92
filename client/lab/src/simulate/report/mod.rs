//! The report: a self-contained HTML page with tables and charts of the results.

mod accuracy;
mod distribution;
mod gantt;
#[cfg(test)]
mod tests;
mod time_axis;
mod timeline;

use cohabit_types::counted;
use std::fmt::Write as _;

use cohabit_console::CommandError;

use super::result::SimulationResults;
use super::summary;
use crate::page::html::{self, escape_html, figure};
use crate::page::palette::legend_marker;

/// Renders the page.
pub(super) fn page(outcomes: &SimulationResults) -> Result<String, CommandError> {
    let body = [
        heading(outcomes),
        legend(outcomes),
        table(outcomes),
        left_out(outcomes),
        figure(
            "Time from submission to end",
            "Fraction of all jobs that ended within this time after their submission; further left is better. All \
             seeds together.",
            &distribution::chart(outcomes)?,
        ),
        figure(
            "Waiting jobs",
            "Jobs submitted but not started, averaged over short intervals. First seed.",
            &timeline::queue(outcomes)?,
        ),
        figure(
            "Devices in use",
            "Devices held by jobs, averaged over short intervals. First seed.",
            &timeline::busy(outcomes)?,
        ),
        devices(outcomes)?,
        estimates(outcomes),
        command(outcomes),
    ];
    let title = format!("{} on {}", outcomes.trace, outcomes.cluster);
    Ok(html::page(&title, &body.concat()))
}

fn heading(outcomes: &SimulationResults) -> String {
    let mut seeds: Vec<String> = outcomes.runs.iter().map(|run| run.seed.to_string()).collect();
    seeds.sort_by_key(String::len);
    seeds.dedup();
    let first = outcomes.runs.first();
    let load = first.and_then(|run| run.load).map(|load| format!("{load:.2}"));
    let facts = [
        ("trace", outcomes.trace.clone()),
        ("cluster", format!("{} ({})", outcomes.cluster, counted(outcomes.devices, "device", "devices"))),
        ("jobs", first.map_or(0, |run| run.metrics().jobs).to_string()),
        ("offered load", load.unwrap_or_else(|| "all at once".into())),
        ("estimates", outcomes.estimator.clone()),
        ("jobs that report progress", format!("{:.0}%", 100.0 * outcomes.behavior.reporting)),
        ("preemptible jobs", format!("{:.0}%", 100.0 * outcomes.behavior.preemptible)),
        ("seconds to save and to restart", outcomes.behavior.stop_cost.to_string()),
        (if seeds.len() == 1 { "seed" } else { "seeds" }, seeds.join(", ")),
    ];
    let spans: String = facts
        .iter()
        .map(|(name, fact)| format!("<span>{name} <b>{}</b></span> ", escape_html(fact)))
        .collect();
    format!("<h1>Simulation of scheduling policies</h1>\n<p class=\"facts\">{spans}</p>\n")
}

fn legend(outcomes: &SimulationResults) -> String {
    let mut spans = String::new();
    for (place, (policy, _)) in outcomes.by_policy().into_iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(spans, "<span>{}{}</span>", legend_marker(place), escape_html(policy));
    }
    format!("<div class=\"legend\">{spans}</div>\n")
}

/// The table of policies; the one with the shortest mean completion time is highlighted.
fn table(outcomes: &SimulationResults) -> String {
    let means: Vec<f64> = outcomes
        .by_policy()
        .iter()
        .map(|(_, runs)| runs.iter().map(|run| run.metrics().mean_jct_s).sum::<f64>() / runs.len() as f64)
        .collect();
    let least = means.iter().copied().fold(f64::INFINITY, f64::min);
    let mut rows = String::new();
    for (place, (row, mean)) in summary::rows(outcomes).iter().zip(&means).enumerate() {
        let class = if *mean <= least { " class=\"best\"" } else { "" };
        let cells: String = row.cells.iter().map(|cell| format!("<td>{}</td>", escape_html(cell))).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(
            rows,
            "<tr{class}><th>{}{}</th>{cells}</tr>",
            legend_marker(place),
            escape_html(&row.policy)
        );
    }
    let headings = ["Policy"].into_iter().chain(summary::headings(outcomes));
    let headings: String = headings.map(|heading| format!("<th>{heading}</th>")).collect();
    format!(
        "<section>\n<h2>Policies on the same arrivals</h2>\n<p class=\"hint\">JCT (job completion time) is the time from \
         submission to end. Slowdown is the time of an iteration relative to that in the best placement. Means over all \
         windows and seeds, ± standard deviation; ratios of mean JCTs with 95% intervals.</p>\n<div class=\"wide\"><table><thead><tr>{headings}</tr></thead>\
         <tbody>\n{rows}</tbody></table></div>\n</section>\n"
    )
}

/// The jobs that are in no run, and those that ended without being completed; empty without any.
fn left_out(outcomes: &SimulationResults) -> String {
    let reasons = outcomes.left_out.reasons();
    let mut rows: Vec<(String, usize)> =
        reasons.iter().map(|(count, why)| ((*why).to_owned(), *count)).collect();
    rows.extend(summary::not_completed_by_policy(outcomes).into_iter().flat_map(|(policy, states)| {
        states
            .into_iter()
            .map(move |(state, count)| (format!("{state} under {policy}, all runs together"), count))
    }));
    if rows.is_empty() {
        return String::new();
    }
    let row =
        |(why, count): &(String, usize)| format!("<tr><th>{}</th><td>{count}</td></tr>\n", escape_html(why));
    let rows: String = rows.iter().map(row).collect();
    format!(
        "<section>\n<h2>Jobs left out or not completed</h2>\n<p class=\"hint\">Jobs of the trace that no run has, by reason, \
         and jobs that ended without being completed, by state.</p>\n<div class=\"wide\"><table><thead><tr><th>Reason</th>\
         <th>Jobs</th></tr></thead><tbody>\n{rows}</tbody></table></div>\n</section>\n"
    )
}

/// One chart per policy, for the first seed.
fn devices(outcomes: &SimulationResults) -> Result<String, CommandError> {
    let mut charts = String::new();
    for (policy, runs) in outcomes.by_policy() {
        let Some(run) = runs.first() else { continue };
        if let Some(gantt) = gantt::chart(run)? {
            let (policy, caption) = (escape_html(policy), escape_html(&gantt.caption));
            // Writing to a string cannot fail.
            let _ = write!(
                charts,
                "<h3>{policy}</h3>\n<p class=\"hint\">{caption}</p>\n<figure>{}</figure>\n",
                gantt.svg
            );
        }
    }
    if charts.is_empty() {
        return Ok(charts);
    }
    Ok(format!("<section>\n<h2>Jobs on devices</h2>\n{charts}</section>\n"))
}

fn estimates(outcomes: &SimulationResults) -> String {
    let table = accuracy::table(outcomes);
    if table.is_empty() {
        return table;
    }
    format!(
        "<section>\n<h2>Accuracy of estimates</h2>\n<p class=\"hint\">Run times estimated at submission ({}), compared with \
         the actual run times. First seed.</p>\n{table}\n</section>\n",
        escape_html(&outcomes.estimator)
    )
}

fn command(outcomes: &SimulationResults) -> String {
    format!("<section>\n<h2>Command</h2>\n<pre>{}</pre>\n</section>\n", escape_html(&outcomes.command))
}
