//! Columns for the entries of members of arrays.

use cohabit_client::types::JobRecord;
use cohabit_console::records::parameters::{ParameterColumns, entry_text};

use super::samples::pending;

fn member(entry: &str) -> JobRecord {
    let mut job = pending();
    job.labels.entry = Some(entry.to_owned());
    job
}

fn table(entries: &[&str]) -> Vec<Vec<String>> {
    let jobs: Vec<JobRecord> = entries.iter().map(|entry| member(entry)).collect();
    let columns = ParameterColumns::of(&jobs);
    [vec![columns.headings()], jobs.iter().map(|job| columns.cells(job)).collect()].concat()
}

#[test]
fn keys_of_objects_are_columns() {
    let found = table(&[r#"{"lr":0.1,"net":"a b"}"#, r#"{"seed":[1,2]}"#]);
    assert_eq!(found, [["lr", "net", "seed"], ["0.1", "a b", ""], ["", "", "[1,2]"]]);
    assert_eq!(entry_text(r#"{"lr":0.1,"net":"a"}"#), "lr=0.1, net=a");
}

#[test]
fn other_entries_have_a_column_and_long_ones_are_cut() {
    assert_eq!(table(&["a", r#"{"lr":1}"#]), [["ENTRY"], ["a"], [r#"{"lr":1}"#]]);
    let long = table(&[&"x".repeat(99)]);
    assert_eq!(long[1][0].chars().count(), 40);
    assert_eq!(ParameterColumns::of(&[pending()]).headings(), Vec::<String>::new());
    let many: Vec<String> = (0..20).map(|key| format!("\"k{key}\":1")).collect();
    assert_eq!(table(&[&format!("{{{}}}", many.join(","))])[0].len(), 8);
}
