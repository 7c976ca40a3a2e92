//! Tables of the results: one row per policy, or one per run.

use std::collections::BTreeMap;

use cohabit_console::{Screen, table};
use cohabit_sim::SharingIncentive;

use super::comparison::mean_jct_ratio;
use super::fitting_table::FittingColumns;
use super::left_out::not_completed;
use super::result::{ConfigurationSource, SimulationResult, SimulationResults};
use super::statistics::{Interval, MeanAndDeviation};

/// The row of a policy.
pub(super) struct PolicyRow {
    pub(super) policy: String,
    pub(super) cells: Vec<String>,
}

/// The usual columns.
const HEADINGS: [&str; 15] = [
    "Jobs",
    "Mean JCT",
    "Median",
    "P95",
    "P99",
    "Longest",
    "Wait",
    "P99 wait",
    "Longest wait",
    "JCT/bound",
    "Stops/job",
    "OOM",
    "Makespan",
    "Busy",
    "Slowdown",
];
/// The columns of policies that stay on a narrow screen, the most important first.
const OF_POLICIES: [&str; 9] =
    ["Mean JCT", "vs first", "vs baseline", "Wait", "P99", "Left out", "Jobs", "Busy", "Slowdown"];
/// The same of runs.
const OF_RUNS: [&str; 8] = ["Window", "Seed", "Mean JCT", "Load", "Wait", "P99", "Left out", "Jobs"];
/// A further column if jobs of the trace are left out.
const OF_LEFT_OUT: &str = "Left out";
/// Further columns if jobs share GPUs.
const OF_SHARING: [&str; 2] = ["Occupied", "Over limit"];
/// Further columns if jobs have ranges of cores and host memory.
const OF_SENSITIVITY: [&str; 2] = ["Speed by share", "Allotments"];
/// Further columns if policies are compared with themselves without sharing.
const OF_INCENTIVE: [&str; 4] = ["Later", "By chance", "Mean delay", "Largest delay"];

/// The rows of all policies: means over windows and seeds, with standard deviations if there are several.
pub(super) fn rows(outcomes: &SimulationResults) -> Vec<PolicyRow> {
    let policies = outcomes.by_policy();
    let base = policies.get(outcomes.baseline).map_or(&[][..], |(_, runs)| runs);
    let row = |(policy, runs): &(&str, Vec<&SimulationResult>)| {
        let mut cells = cells(runs, outcomes);
        cells.push(mean_jct_ratio(runs, base).map_or(String::new(), Interval::ratio));
        PolicyRow { policy: (*policy).to_owned(), cells }
    };
    policies.iter().map(row).collect()
}

/// The headings of the cells of a row.
pub(super) fn headings(outcomes: &SimulationResults) -> Vec<&'static str> {
    let versus = if outcomes.baseline == 0 { "vs first" } else { "vs baseline" };
    usual_headings(outcomes).chain([versus]).collect()
}

fn usual_headings(outcomes: &SimulationResults) -> impl Iterator<Item = &'static str> {
    let of_sharing: &[&str] = match outcomes.sharing {
        ConfigurationSource::Measured => &OF_SHARING,
        ConfigurationSource::FromTrace => &[],
    };
    let of_sensitivity: &[&str] = if outcomes.sensitivity.is_some() { &OF_SENSITIVITY } else { &[] };
    let of_incentive: &[&str] = if has_incentives(outcomes) { &OF_INCENTIVE } else { &[] };
    let of_left_out: &[&str] = if leaves_out(outcomes) { &[OF_LEFT_OUT] } else { &[] };
    let (jobs, others) = HEADINGS.split_at(1);
    jobs.iter()
        .chain(of_left_out)
        .chain(others)
        .chain(of_sharing)
        .chain(of_sensitivity)
        .chain(of_incentive)
        .copied()
}

fn leaves_out(outcomes: &SimulationResults) -> bool {
    outcomes.runs.iter().any(|run| run.left_out.total() > 0)
}

fn has_incentives(outcomes: &SimulationResults) -> bool {
    outcomes.runs.iter().any(|run| run.incentive.is_some())
}

fn cells(runs: &[&SimulationResult], outcomes: &SimulationResults) -> Vec<String> {
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
        mean_time(&|run| run.metrics().max_jct_s),
        mean_time(&|run| run.metrics().mean_wait_s),
        mean_time(&|run| run.metrics().p99_wait_s),
        mean_time(&|run| run.metrics().max_wait_s),
        format!("{:.2}", mean(&|run| run.metrics().jct_over_lower_bound)),
        format!("{:.2}", mean(&|run| run.metrics().stops_per_job)),
        format!("{:.0}", mean(&|run| run.metrics().out_of_memory as f64)),
        spread(&|run| run.metrics().makespan_s).time(),
        format!("{:.1}%", 100.0 * mean(&|run| run.metrics().gpu_busy)),
        format!("{:.3}", mean(&|run| run.metrics().mean_slowdown)),
    ];
    if leaves_out(outcomes) {
        cells.insert(1, format!("{:.0}", mean(&|run| run.left_out.total() as f64)));
    }
    if outcomes.sharing == ConfigurationSource::Measured {
        cells.extend([
            format!("{:.1}%", 100.0 * mean(&|run| run.metrics().gpu_occupied)),
            format!("{:.1}%", 100.0 * mean(&|run| run.metrics().bound_violations)),
        ]);
    }
    if outcomes.sensitivity.is_some() {
        cells.extend([
            format!("{:.3}", mean(&|run| run.metrics().speed_by_share)),
            format!("{:.0}", mean(&|run| run.metrics().allotments as f64)),
        ]);
    }
    if has_incentives(outcomes) {
        cells.extend(incentive_cells(runs));
    }
    cells
}

/// The mean fraction of jobs that are later, with sharing and by chance, and their mean delay, and the
/// largest delay of all runs; empty for a policy without sharing.
fn incentive_cells(runs: &[&SimulationResult]) -> [String; 4] {
    let incentives: Vec<SharingIncentive> = runs.iter().filter_map(|run| run.incentive).collect();
    if incentives.is_empty() {
        return [const { String::new() }; 4];
    }
    let mean = |of: fn(&SharingIncentive) -> f64| {
        MeanAndDeviation::of(&incentives.iter().map(of).collect::<Vec<_>>()).mean
    };
    let largest = incentives.iter().map(|it| it.largest_delay).fold(0.0, f64::max);
    let cells = [mean(|it| it.later), mean(|it| it.later_by_chance), mean(|it| it.mean_delay), largest];
    cells.map(|part| format!("{:.1}%", 100.0 * part))
}

/// `600`, or `598/600` if not all jobs have completed.
fn jobs(runs: &[&SimulationResult]) -> String {
    let of = |count: &dyn Fn(&SimulationResult) -> u64| {
        runs.iter().map(|run| count(run)).sum::<u64>() / runs.len().max(1) as u64
    };
    let (completed, jobs) = (of(&|run| run.metrics().completed as u64), of(&|run| run.metrics().jobs as u64));
    if completed == jobs { jobs.to_string() } else { format!("{completed}/{jobs}") }
}

/// One row per policy, and what has to be known to read them.
pub(super) fn by_policy(outcomes: &SimulationResults, screen: Screen) -> String {
    let headings: Vec<&'static str> = ["Policy"].into_iter().chain(headings(outcomes)).collect();
    let rows = rows(outcomes).into_iter().map(|row| [row.policy].into_iter().chain(row.cells).collect());
    let rows: Vec<Vec<String>> = rows.collect();
    let table = table_of(&headings, &rows, &OF_POLICIES, screen);
    table + &notes(outcomes)
}

/// A table of the columns that fit on the screen, with headings in capitals, and a line on the others.
fn table_of(headings: &[&'static str], rows: &[Vec<String>], important: &[&str], screen: Screen) -> String {
    let fitting = FittingColumns::of(headings, rows, important, screen.width);
    let capitals: Vec<String> = fitting.select(headings).iter().map(|it| it.to_uppercase()).collect();
    let mut table = table::table(&capitals.iter().map(String::as_str).collect::<Vec<_>>(), screen);
    for row in rows {
        table.add_row(fitting.select(row).into_iter().map(table::cell));
    }
    let cut = fitting.cut(headings);
    if cut.is_empty() {
        return table::text(&table);
    }
    let note = format!("Not shown, for want of width (--output json has all): {}.", cut.join(", "));
    table::text(&table) + &wrapped(&note, screen)
}

/// The sentence in lines that fit on the screen.
fn wrapped(sentence: &str, screen: Screen) -> String {
    let width = screen.width.map_or(usize::MAX, usize::from);
    let mut lines = vec![String::new()];
    for word in sentence.split(' ') {
        let line = lines.last_mut().map_or(0, |line| line.chars().count());
        match lines.last_mut() {
            Some(last) if line > 0 && line + 1 + word.chars().count() <= width => {
                *last += &format!(" {word}")
            }
            Some(last) if line == 0 => *last += word,
            Some(_) | None => lines.push(word.to_owned()),
        }
    }
    text_of(&lines)
}

/// One row per run.
pub(super) fn by_run(outcomes: &SimulationResults, screen: Screen) -> String {
    let ours = ["Preempted", "Load", "Bound", "Plan P50", "Plan P99", "Events", "Wall"];
    let headings = ["Policy", "Window", "Seed"].into_iter().chain(usual_headings(outcomes)).chain(ours);
    let headings: Vec<&'static str> = headings.collect();
    let row = |run: &SimulationResult| {
        let metrics = run.metrics();
        let leading = [metrics.policy.clone(), (run.window + 1).to_string(), run.seed.to_string()];
        let trailing = [
            metrics.preemptions.to_string(),
            run.load.map_or(String::new(), |load| format!("{load:.2}")),
            super::statistics::time(metrics.lower_bound_mean_jct_s),
            format!("{} us", metrics.plan_us_p50),
            format!("{} us", metrics.plan_us_p99),
            metrics.events.to_string(),
            format!("{:.1} s", metrics.wall_s),
        ];
        leading.into_iter().chain(cells(&[run], outcomes)).chain(trailing).collect()
    };
    let rows: Vec<Vec<String>> = outcomes.runs.iter().map(row).collect();
    table_of(&headings, &rows, &OF_RUNS, screen) + &notes(outcomes)
}

/// The load, and the jobs that are in no row.
fn notes(outcomes: &SimulationResults) -> String {
    let mut lines = vec![String::new(), load(outcomes)];
    let left_out = &outcomes.left_out;
    if left_out.total() > 0 {
        let jobs = if left_out.total() == 1 { "job" } else { "jobs" };
        lines.push(format!("Left out of the trace: {} {jobs}", left_out.total()));
        lines.extend(left_out.reasons().into_iter().map(|(count, why)| format!("{count:>8}  {why}")));
    }
    for (policy, states) in not_completed_by_policy(outcomes) {
        let states: Vec<String> = states.iter().map(|(state, count)| format!("{count} {state}")).collect();
        lines.push(format!("Not completed under {policy}: {}", states.join(", ")));
    }
    text_of(&lines)
}

/// How many jobs ended in another state than completed, by state, for each policy with such jobs.
pub(super) fn not_completed_by_policy(outcomes: &SimulationResults) -> Vec<(&str, BTreeMap<String, usize>)> {
    let of_runs = |runs: Vec<&SimulationResult>| {
        let mut states: BTreeMap<String, usize> = BTreeMap::new();
        for (state, count) in runs.iter().flat_map(|run| not_completed(&run.evaluated.jobs)) {
            *states.entry(state).or_default() += count;
        }
        states
    };
    let policies = outcomes.by_policy().into_iter().map(|(policy, runs)| (policy, of_runs(runs)));
    policies.filter(|(_, states)| !states.is_empty()).collect()
}

/// A sentence on the offered load.
fn load(outcomes: &SimulationResults) -> String {
    let loads: Vec<f64> = outcomes.runs.iter().filter_map(|run| run.load).collect();
    let (least, most) =
        loads.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), load| (load.min(least), load.max(most)));
    let range = match (loads.is_empty(), most - least < 0.005) {
        (true, _) => return "Offered load: all jobs are submitted at once".to_owned(),
        (false, true) => format!("{most:.2}"),
        (false, false) => format!("{least:.2} to {most:.2}"),
    };
    format!("Offered load: {range} (GPU time of the jobs over that of {} GPUs)", outcomes.devices)
}

/// Lines of a text.
fn text_of(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// One line per policy: its name and mean completion time in seconds.
pub(super) fn lines(outcomes: &SimulationResults) -> Vec<String> {
    let line = |(policy, runs): (&str, Vec<&SimulationResult>)| {
        let means: Vec<f64> = runs.iter().map(|run| run.metrics().mean_jct_s).collect();
        format!("{policy} {:.3}", MeanAndDeviation::of(&means).mean)
    };
    outcomes.by_policy().into_iter().map(line).collect()
}
