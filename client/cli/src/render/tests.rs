//! Snapshots of tables and documents.

use cohabit_client::types::{JobPrediction, JobRecord, JobState};
use cohabit_console::{Colour, Screen, with_schema};
use cohabit_documents::jobs::{ChangeDocument, ChangeListDocument, JobDocument, JobListDocument};
use cohabit_documents::nodes::{NodeDocument, NodeListDocument, RefusedWorkerDocument};
use jiff::tz::TimeZone;
use serde::Serialize;

use super::change_results::describe_change_result;
use super::expected_times::eta;
use super::hostile_text::assert_printable;
use super::job_sheet::job_sheet;
use super::jobs_table::{ColumnSet, jobs_table};
use super::nodes_table::{nodes_table, refused_workers};
use super::samples::{array, at, failed, nodes, pending, refused, running, tokens};
use super::token_documents::{TokenDocument, TokenListDocument};
use super::tokens_table::tokens_table;

const PIPE: Screen = Screen { width: None, colour: Colour::None };

fn listed(columns: ColumnSet, screen: Screen) -> String {
    jobs_table(&[failed(), array(), running(), pending()], columns, at(100), &TimeZone::UTC, screen)
}

fn json(document: impl Serialize) -> String {
    serde_json::to_string_pretty(&with_schema(document)).unwrap()
}

#[test]
fn a_list_has_the_usual_columns() {
    insta::assert_snapshot!("list", listed(ColumnSet::Usual, PIPE));
}

#[test]
fn a_wide_list_has_more_columns() {
    insta::assert_snapshot!("list_wide", listed(ColumnSet::Wide, PIPE));
}

#[test]
fn a_pending_job_lists_the_time_until_its_predicted_end() {
    let predicted =
        JobPrediction { starts_at: Some(at(160)), ends_at: Some(at(220)), ..JobPrediction::default() };
    let expected = JobRecord { predicted: Some(predicted), ..pending() };
    assert_eq!(eta(&expected, at(100)), "2 min 0 s");
    assert_eq!(eta(&JobRecord { state: JobState::Cancelled, ..expected }, at(100)), "");
}

#[test]
fn the_time_until_the_end_is_a_range_or_unknown_unless_the_job_reports_it() {
    let after = |predicted| eta(&JobRecord { predicted: Some(predicted), ..running() }, at(100));
    let by_runs = JobPrediction {
        ends_at: Some(at(1_000)),
        ends_between: Some([at(700), at(2_500)]),
        ..JobPrediction::default()
    };
    assert_eq!(after(by_runs), "10–40 min");
    assert_eq!(after(JobPrediction { ends_at: Some(at(141)), ..JobPrediction::default() }), "41 s");
    assert_eq!(after(JobPrediction::default()), "unknown");
    assert_eq!(eta(&pending(), at(100)), "", "it has not started");
}

#[test]
fn a_list_fits_a_terminal() {
    let text = listed(ColumnSet::Usual, Screen { width: Some(80), ..PIPE });
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn a_long_name_leaves_the_other_columns_their_room() {
    let long = JobRecord { name: "name".repeat(75), ..running() };
    let text = jobs_table(&[long], ColumnSet::Wide, at(100), &TimeZone::UTC, PIPE);
    assert!(text.contains(&format!("  {}nam…  ada", "name".repeat(9))), "{text}");
}

#[test]
fn an_empty_list_is_only_its_headings() {
    let text = jobs_table(&[], ColumnSet::Usual, at(0), &TimeZone::UTC, PIPE);
    assert_eq!(
        text.split_whitespace().collect::<Vec<_>>().join(" "),
        "ID NAME USER STATE RUNTIME ETA NODE DETAIL"
    );
}

#[test]
fn colours_are_used_only_on_screens_that_show_them() {
    assert!(!listed(ColumnSet::Usual, PIPE).contains('\u{1b}'));
    assert!(listed(ColumnSet::Usual, Screen { colour: Colour::Shown, ..PIPE }).contains('\u{1b}'));
}

#[test]
fn a_sheet_shows_a_job_in_full() {
    let sheets =
        [running(), failed(), array(), pending()].map(|job| job_sheet(&job, &[], at(100), &TimeZone::UTC));
    insta::assert_snapshot!("show", sheets.join("\n"));
}

#[test]
fn the_document_of_a_job_is_the_contract() {
    insta::assert_snapshot!("show_json", json(JobDocument::from(&running())));
    insta::assert_snapshot!("show_json_failed", json(JobDocument::from(&failed())));
}

#[test]
fn the_document_of_a_list_holds_jobs() {
    let document =
        serde_json::to_value(with_schema(JobListDocument { jobs: vec![JobDocument::from(&array())] }))
            .unwrap();
    assert_eq!(document["schema"], 1);
    assert_eq!(document["jobs"][0]["id"], "9");
    assert_eq!(document["jobs"][0]["array"]["members"], 100);
    assert_eq!(document["jobs"][0]["array"]["states"]["FAILED"], 1);
}

#[test]
fn nodes_are_shown_as_lines_and_as_a_document() {
    let table = |columns| nodes_table(&nodes(), columns, &TimeZone::UTC, PIPE);
    insta::assert_snapshot!("nodes", format!("{}\n{}", table(ColumnSet::Usual), table(ColumnSet::Wide)));
    insta::assert_snapshot!("refused_workers", refused_workers(&nodes(), &refused(), &TimeZone::UTC));
    insta::assert_snapshot!(
        "nodes_json",
        json(NodeListDocument {
            head_problems: vec!["the head cannot write".into()],
            nodes: nodes().iter().map(NodeDocument::from).collect(),
            refused_workers: Some(refused().iter().map(RefusedWorkerDocument::from).collect()),
        })
    );
}

#[test]
fn tokens_are_shown_without_secrets() {
    insta::assert_snapshot!("tokens", tokens_table(&tokens(), &TimeZone::UTC, PIPE));
    insta::assert_snapshot!(
        "tokens_json",
        json(TokenListDocument { tokens: tokens().iter().map(TokenDocument::from).collect() })
    );
}

#[test]
fn a_change_has_a_result_for_each_job() {
    use cohabit_client::types::{ChangeResult, JobChange, JobId, Refusal, RefusalCode};
    let refused = ChangeResult::Refused(Refusal::new(RefusalCode::WrongState, "it ended already"));
    let changes = [(1, ChangeResult::Done), (2, ChangeResult::Already), (3, refused)]
        .map(|(job, result)| ChangeDocument::new(JobChange::Hold, JobId::new(job), &result));
    insta::assert_snapshot!("change_json", json(ChangeListDocument { changes: changes.into() }));
}

#[test]
fn a_refused_change_shows_codes_of_characters_that_are_not_visible() {
    use cohabit_client::types::{ChangeResult, JobChange, JobId, Refusal, RefusalCode};
    assert_printable(|text| {
        let refused = ChangeResult::Refused(Refusal::new(RefusalCode::NotFound, text));
        describe_change_result(JobChange::Cancel, JobId::new(1), &refused)
    });
}
