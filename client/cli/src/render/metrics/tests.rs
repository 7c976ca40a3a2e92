//! Metrics as text.

use cohabit_client::types::{JobId, MetricRow, MetricSeries, MetricValue, Time};
use cohabit_console::{Colour, Screen, with_schema};

use cohabit_documents::metrics::MetricsDocument;

use super::*;

const PIPE: Screen = Screen { width: None, colour: Colour::None };

fn attempt(job: JobId, number: u32, steps: std::ops::Range<u64>) -> AttemptSeries {
    let row = |step: u64| MetricRow {
        step,
        at: Time::from_micros(1_767_225_600_000_000 + step * 1_000_000),
        values: vec![
            Some(MetricValue(if step == 7 { f64::NAN } else { 1.0 / (1.0 + step as f64) })),
            step.is_multiple_of(4).then(|| MetricValue(step as f64 / 40.0)),
        ],
    };
    let names = vec!["loss".to_owned(), "accuracy, top 1".to_owned()];
    AttemptSeries {
        rank: job.attempt(number).rank(0),
        series: MetricSeries { names, rows: steps.map(row).collect(), thinning: 1 },
    }
}

fn some() -> Vec<AttemptSeries> {
    vec![attempt(JobId::new(3), 1, 0..9), attempt(JobId::new(3), 2, 8..12)]
}

#[test]
fn csv_has_a_row_for_each_report() {
    insta::assert_snapshot!(csv(&some()).unwrap());
}

#[test]
fn a_table_has_a_row_for_each_attempt_and_metric() {
    insta::assert_snapshot!(summary(&some(), PIPE));
}

#[test]
fn a_document_leaves_out_what_was_not_reported() {
    let document = MetricsDocument::new(some()[1..].iter().map(|it| (it.rank, &it.series)));
    insta::assert_snapshot!(serde_json::to_string_pretty(&with_schema(document)).unwrap());
}

#[test]
fn a_plot_joins_the_attempts_of_a_job_and_tells_of_what_is_no_number() {
    insta::assert_snapshot!(plot(&some(), PIPE));
}

#[test]
fn jobs_have_lines_of_their_own_and_colours_where_there_are_any() {
    let members = [1, 2].map(|index| attempt(JobId::member(4, index), 1, 0..6));
    let shown = plot(&members, Screen { width: Some(60), colour: Colour::Shown });
    assert!(shown.contains("4.1") && shown.contains("4.2") && shown.contains("\u{1b}[34m"), "{shown}");
    assert!(shown.lines().all(|line| console_width(line) <= 60), "{shown}");
    assert!(!plot(&members, PIPE).contains('\u{1b}'));
}

/// Characters without escape sequences.
fn console_width(line: &str) -> usize {
    let mut pieces = line.split('\u{1b}');
    let first = pieces.next().unwrap_or_default().chars().count();
    first + pieces.map(|piece| piece.split_once('m').map_or("", |it| it.1).chars().count()).sum::<usize>()
}

#[test]
fn one_value_and_values_that_are_all_the_same_have_a_plot() {
    let mut one = attempt(JobId::new(3), 1, 3..4);
    one.keep(&["loss".to_owned()]);
    assert_eq!((one.series.names.len(), one.series.rows[0].values.len()), (1, 1));
    assert!(plot(&[one], PIPE).contains("step"));
    assert_eq!(plot(&[], PIPE), "");
}
