//! Tables of the results: one row per policy, or one per run.

use cohabit_console::{Screen, table};

use super::result::{ConfigurationSource, SimulationResult, SimulationResults};
use super::statistics::{MeanAndDeviation, mean_ratio};

/// The row of a policy.
pub(super) struct PolicyRow {
    pub(super) policy: String,
    pub(super) cells: Vec<String>,
}

/// The usual columns.
const HEADINGS: [&str; 9] =
    ["JOBS", "MEAN JCT", "MEDIAN", "P95", "P99", "WAIT", "MAKESPAN", "BUSY", "SLOWDOWN"];
/// Further columns if jobs share GPUs.
const OF_SHARING: [&str; 3] = ["OCCUPIED", "OOM", "OVER BOUND"];
const VS_FIRST: &str = "VS FIRST";

/// The rows of all policies: means over the seeds, with standard deviations if there are several.
pub(super) fn rows(outcomes: &SimulationResults) -> Vec<PolicyRow> {
    let policies = outcomes.by_policy();
    let first: Vec<f64> = policies.first().map_or(Vec::new(), |(_, runs)| mean_jcts(runs));
    let row = |(policy, runs): &(&str, Vec<&SimulationResult>)| {
        let mut cells = cells(runs, outcomes.sharing);
        cells.push(versus(&mean_jcts(runs), &first));
        PolicyRow { policy: (*policy).to_owned(), cells }
    };
    policies.iter().map(row).collect()
}

fn mean_jcts(runs: &[&SimulationResult]) -> Vec<f64> {
    runs.iter().map(|run| run.metrics().mean_jct_s).collect()
}

/// The mean completion time relative to that of the first policy on the same arrivals.
fn versus(own: &[f64], first: &[f64]) -> String {
    let ratios: Vec<f64> = own.iter().zip(first).map(|(own, first)| own / first).collect();
    format!("{:.2} x", mean_ratio(&ratios))
}

fn headings(sharing: ConfigurationSource) -> impl Iterator<Item = &'static str> {
    let more: &[&str] = match sharing {
        ConfigurationSource::Measured => &OF_SHARING,
        ConfigurationSource::FromTrace => &[],
    };
    HEADINGS.iter().chain(more).copied()
}

fn cells(runs: &[&SimulationResult], sharing: ConfigurationSource) -> Vec<String> {
    let spread = |of: &dyn Fn(&SimulationResult) -> f64| {
        MeanAndDeviation::of(&runs.iter().map(|run| of(run)).collect::<Vec<_>>())
    };
    let mean_time =
        |of: &dyn Fn(&SimulationResult) -> f64| MeanAndDeviation { deviation: None, ..spread(of) }.time();
    let mean = |of: &dyn Fn(&SimulationResult) -> f64| spread(of).mean;
    let mut cells = vec![
        jobs(runs),
        spread(&|run| run.metrics().mean_jct_s).time(),
        mean_time(&|run| run.metrics().median_jct_s),
        mean_time(&|run| run.metrics().p95_jct_s),
        mean_time(&|run| run.metrics().p99_jct_s),
        mean_time(&|run| run.metrics().mean_wait_s),
        spread(&|run| run.metrics().makespan_s).time(),
        format!("{:.1}%", 100.0 * mean(&|run| run.metrics().gpu_busy)),
        format!("{:.3}", mean(&|run| run.metrics().mean_slowdown)),
    ];
    if sharing == ConfigurationSource::Measured {
        cells.extend([
            format!("{:.1}%", 100.0 * mean(&|run| run.metrics().gpu_occupied)),
            format!("{:.0}", mean(&|run| run.metrics().out_of_memory as f64)),
            format!("{:.1}%", 100.0 * mean(&|run| run.metrics().bound_violations)),
        ]);
    }
    cells
}

/// `600`, or `598/600` if not all jobs have completed.
fn jobs(runs: &[&SimulationResult]) -> String {
    let of = |count: &dyn Fn(&SimulationResult) -> u64| {
        runs.iter().map(|run| count(run)).sum::<u64>() / runs.len().max(1) as u64
    };
    let (completed, jobs) = (of(&|run| run.metrics().completed as u64), of(&|run| run.metrics().jobs as u64));
    if completed == jobs { jobs.to_string() } else { format!("{completed}/{jobs}") }
}

/// One row per policy.
pub(super) fn by_policy(outcomes: &SimulationResults, screen: Screen) -> String {
    let headings: Vec<&str> =
        ["POLICY"].into_iter().chain(headings(outcomes.sharing)).chain([VS_FIRST]).collect();
    let mut table = table::table(&headings, screen);
    for row in rows(outcomes) {
        table.add_row([row.policy].into_iter().chain(row.cells));
    }
    table::text(&table)
}

/// One row per run.
pub(super) fn by_run(outcomes: &SimulationResults, screen: Screen) -> String {
    let ours = ["PREEMPTED", "LOAD", "BOUND", "PLAN P50", "PLAN P99", "EVENTS", "WALL"];
    let usual = headings(outcomes.sharing);
    let headings: Vec<&str> = ["POLICY", "SEED"].into_iter().chain(usual).chain(ours).collect();
    let mut table = table::table(&headings, screen);
    for run in &outcomes.runs {
        let metrics = run.metrics();
        let leading = [metrics.policy.clone(), run.seed.to_string()];
        let trailing = [
            metrics.preemptions.to_string(),
            run.load.map_or(String::new(), |load| format!("{load:.2}")),
            super::statistics::time(metrics.lower_bound_mean_jct_s),
            format!("{} us", metrics.plan_us_p50),
            format!("{} us", metrics.plan_us_p99),
            metrics.events.to_string(),
            format!("{:.1} s", metrics.wall_s),
        ];
        table.add_row(leading.into_iter().chain(cells(&[run], outcomes.sharing)).chain(trailing));
    }
    table::text(&table)
}

/// One line per policy: its name and mean completion time in seconds.
pub(super) fn lines(outcomes: &SimulationResults) -> Vec<String> {
    let line = |(policy, runs): (&str, Vec<&SimulationResult>)| {
        format!("{policy} {:.3}", MeanAndDeviation::of(&mean_jcts(&runs)).mean)
    };
    outcomes.by_policy().into_iter().map(line).collect()
}
