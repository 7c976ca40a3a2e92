//! Tables and documents of results.

use cohabit_console::{Colour, Screen};
use cohabit_sim::SharingIncentive;
use serde_json::Value;

use super::result::{ConfigurationSource, SensitivitySource};
use super::samples::outcomes;
use super::{document, summary};

const PLAIN: Screen = Screen { width: None, colour: Colour::None };

fn columns(line: &str) -> Vec<&str> {
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

/// The lines of the table, without the notes behind it.
fn lines_of(text: &str) -> Vec<&str> {
    text.lines().take_while(|line| !line.is_empty()).collect()
}

#[test]
fn policies_are_compared_with_the_first_for_each_seed() {
    let table = summary::by_policy(&outcomes(), PLAIN);
    let lines = lines_of(&table);
    assert_eq!(lines.len(), 3, "{table}");
    let fifo = columns(lines[1]);
    assert_eq!(fifo[..3], ["fifo", "2", "5 min 0 s ± 2 min 21 s"]);
    assert_eq!(fifo.last(), Some(&"1.00 x [1.00, 1.00]"));
    // The geometric mean of one half and one quarter.
    let other = columns(lines[2]);
    assert_eq!((other[2], other.last()), ("1 min 40 s ± 0 ms", Some(&"0.35 x [0.00, 28.90]")));
}

#[test]
fn wide_tables_have_a_row_for_each_run() {
    let table = summary::by_run(&outcomes(), PLAIN);
    let lines = lines_of(&table);
    assert_eq!(lines.len(), 5, "{table}");
    assert!(columns(lines[3]).starts_with(&["fifo", "1", "2", "2", "6 min 40 s"]), "{table}");
    assert_eq!(columns(lines[0]).len(), columns(lines[1]).len(), "{table}");
}

#[test]
fn tables_have_more_columns_if_jobs_share_gpus() {
    let mut outcomes = outcomes();
    outcomes.sharing = ConfigurationSource::Measured;
    let table = summary::by_policy(&outcomes, PLAIN);
    let lines = lines_of(&table);
    let heading = columns(lines[0]);
    assert_eq!(heading[heading.len() - 3..], ["OCCUPIED", "OVER LIMIT", "VS FIRST"]);
    let fifo = columns(lines[1]);
    assert_eq!(fifo[fifo.len() - 3..], ["62.5%", "12.5%", "1.00 x [1.00, 1.00]"]);
    assert_eq!(fifo[10..13], ["3.33", "0.50", "3"], "over the bound, stops for each job, out of memory");
    let wide = summary::by_run(&outcomes, PLAIN);
    let lines = lines_of(&wide);
    assert_eq!(columns(lines[0]).len(), columns(lines[1]).len(), "{wide}");
}

#[test]
fn tables_have_more_columns_if_jobs_have_ranges() {
    let mut outcomes = outcomes();
    let known = SensitivitySource { tables: "t.csv".into(), models: Vec::new(), known: "exact".into() };
    outcomes.sensitivity = Some(known);
    let table = summary::by_policy(&outcomes, PLAIN);
    let lines = lines_of(&table);
    let heading = columns(lines[0]);
    assert_eq!(heading[heading.len() - 3..], ["SPEED BY SHARE", "ALLOTMENTS", "VS FIRST"]);
    let fifo = columns(lines[1]);
    assert_eq!(fifo[fifo.len() - 3..], ["1.125", "5", "1.00 x [1.00, 1.00]"]);
    let wide = summary::by_run(&outcomes, PLAIN);
    let lines = lines_of(&wide);
    assert_eq!(columns(lines[0]).len(), columns(lines[1]).len(), "{wide}");
    let document = serde_json::to_value(document::document(&outcomes)).unwrap();
    assert_eq!(document["sensitivity"]["known"], "exact");
}

#[test]
fn tables_tell_who_is_later_than_without_sharing() {
    let mut outcomes = outcomes();
    let incentive = |later, largest_delay| SharingIncentive {
        compared: 2,
        later,
        later_at_all: 0.5,
        largest_delay,
        mean_delay: 0.1,
        later_by_chance: 0.04,
    };
    (outcomes.runs[1].incentive, outcomes.runs[3].incentive) =
        (Some(incentive(0.01, 0.3)), Some(incentive(0.02, 0.2)));
    let table = summary::by_policy(&outcomes, PLAIN);
    let lines = lines_of(&table);
    assert!(
        lines[0].contains("LATER") && lines[0].contains("BY CHANCE") && lines[0].contains("LARGEST DELAY"),
        "{table}"
    );
    let other = columns(lines[2]);
    assert_eq!(other[other.len() - 5..other.len() - 1], ["1.5%", "4.0%", "10.0%", "30.0%"]);
    let document = serde_json::to_value(document::document(&outcomes)).unwrap();
    assert_eq!(
        (&document["runs"][0]["incentive"], &document["runs"][1]["incentive"]["later"]),
        (&Value::Null, &0.01.into())
    );
}

#[test]
fn a_narrow_table_fits_and_says_what_was_cut() {
    let narrow = Screen { width: Some(80), colour: Colour::None };
    for text in [summary::by_policy(&outcomes(), narrow), summary::by_run(&outcomes(), narrow)] {
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("MEAN JCT") && text.contains("Not shown, for want of width"), "{text}");
    }
    let table = summary::by_policy(&outcomes(), narrow);
    assert!(table.lines().next().unwrap().ends_with("VS FIRST") && table.contains("P95"), "{table}");
    assert_eq!(lines_of(&table).iter().filter(|line| line.starts_with("fifo ")).count(), 1, "{table}");
}

#[test]
fn left_out_and_uncompleted_jobs_are_told_with_their_reasons() {
    let mut outcomes = outcomes();
    outcomes.runs[3].evaluated.jobs[1].state = cohabit_types::JobState::OutOfMemory;
    outcomes.runs.iter_mut().for_each(|run| run.left_out = outcomes.left_out);
    let table = summary::by_policy(&outcomes, PLAIN);
    let heading = columns(lines_of(&table)[0]);
    assert_eq!((heading[2], columns(lines_of(&table)[1])[2]), ("LEFT OUT", "4"));
    for words in [
        "Offered load: 0.90 (GPU time of the jobs over that of 2 GPUs)",
        "Left out of the trace: 4 jobs",
        "3  need more GPUs than the cluster has",
        "1  need more GPU memory than the cluster's GPUs have",
        "Not completed under a-srpt:<b>&theta=1: 1 OUT_OF_MEMORY",
    ] {
        assert!(table.contains(words), "{words}: {table}");
    }
    let document = serde_json::to_value(document::document(&outcomes)).unwrap();
    assert_eq!(
        (&document["left_out"]["total"], &document["runs"][0]["left_out"]["too_wide"]),
        (&4.into(), &3.into())
    );
    assert_eq!(document["runs"][3]["not_completed"], serde_json::json!({"OUT_OF_MEMORY": 1}));
}

#[test]
fn quiet_lines_are_policy_and_seconds() {
    assert_eq!(summary::lines(&outcomes()), ["fifo 300.000", "a-srpt:<b>&theta=1 100.000"]);
}

#[test]
fn the_document_has_all_documented_fields() {
    let outcomes = outcomes();
    let document = serde_json::to_value(document::document(&outcomes)).unwrap();
    assert_eq!(document["schema"], 1);
    assert_eq!((&document["trace"], &document["cluster"]), (&"jobs <1>.csv".into(), &"2x1:V100@25g".into()));
    assert_eq!(document["preemptible"], 1.0);
    assert_eq!((&document["progress"], &document["stop_cost"]), (&0.3.into(), &"15,45".into()));
    assert_eq!((&document["interference"], &document["predictor"]), (&"law".into(), &"law".into()));
    let runs = document["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 4);
    for key in [
        "policy",
        "jobs",
        "completed",
        "makespan_s",
        "mean_jct_s",
        "median_jct_s",
        "p95_jct_s",
        "p99_jct_s",
        "max_jct_s",
        "median_wait_s",
        "p95_wait_s",
        "p99_wait_s",
        "max_wait_s",
        "jct_over_lower_bound",
        "stops_per_job",
        "window",
        "mean_wait_s",
        "total_completion_s",
        "lower_bound_mean_jct_s",
        "gpu_busy",
        "mean_slowdown",
        "out_of_memory",
        "gpu_occupied",
        "bound_violations",
        "speed_by_share",
        "allotments",
        "plan_us_p50",
        "plan_us_p99",
        "events",
        "wall_s",
        "seed",
        "load",
        "left_out",
        "not_completed",
        "estimates",
        "periods",
    ] {
        assert!(runs.iter().all(|run| run.get(key).is_some_and(|value| *value != Value::Null)), "{key}");
    }
    assert_eq!((&runs[2]["seed"], &runs[2]["window"]), (&2.into(), &1.into()));
    assert_eq!((&document["windows"], &document["skip"]), (&1.into(), &0.into()));
    assert_eq!(document["comparisons"][1]["baseline"], "fifo");
}
