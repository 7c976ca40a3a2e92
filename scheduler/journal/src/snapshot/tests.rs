//! Golden files of snapshots: each line is a snapshot of a head, with its parts. `snapshots-6.jsonl` has the
//! same heads as `snapshots-5.jsonl`.
//!
//! `cargo nextest run -p cohabit-journal --run-ignored all write_the_golden_snapshots` writes those of a new
//! format.

use cohabit_scheduler_core::{Event, Head, HeadSnapshot, SnapshotPart};
use cohabit_types::Time;
use serde_json::{Value, json};

use super::{DecodedHead, decode_head, decode_part, encode_head, encode_part};
use crate::tests::archived_array::archived_array;
use crate::{FORMAT, JournalDecodeError};

const SNAPSHOTS_5: &str = include_str!("../../tests/golden/snapshots-5.jsonl");
const SNAPSHOTS_6: &str = include_str!("../../tests/golden/snapshots-6.jsonl");

type Snapshot = (HeadSnapshot, Vec<SnapshotPart>);

fn read(format: u32, line: &str) -> Snapshot {
    let stored: Value = serde_json::from_str(line).unwrap();
    let head = decode_head(format, stored["head"].to_string().as_bytes()).unwrap();
    assert_eq!(head.jobs, None, "formats 5 and 6 store jobs in parts");
    let parts = stored["parts"].as_array().unwrap().iter();
    let parts = parts.map(|part| decode_part(format, part.to_string().as_bytes()).unwrap()).collect();
    (head.head, parts)
}

fn write((head, parts): &Snapshot) -> String {
    let text = |json: serde_json::Result<Vec<u8>>| String::from_utf8(json.unwrap()).unwrap();
    let parts: Vec<String> = parts.iter().map(|part| text(encode_part(part))).collect();
    format!(r#"{{"head":{},"parts":[{}]}}"#, text(encode_head(head)), parts.join(","))
}

#[test]
fn snapshots_of_format_5_are_sound_heads() {
    assert!(SNAPSHOTS_5.lines().count() >= 5);
    for line in SNAPSHOTS_5.lines() {
        let (head, parts) = read(5, line);
        Head::from_snapshot(head, parts).unwrap().check().unwrap();
    }
}

#[test]
fn snapshots_of_format_6_are_read_and_written() {
    assert_eq!(SNAPSHOTS_6.lines().count(), SNAPSHOTS_5.lines().count());
    for (line, old) in SNAPSHOTS_6.lines().zip(SNAPSHOTS_5.lines()) {
        let snapshot = read(5, old);
        assert_eq!(write(&snapshot), line);
        assert_eq!(read(6, line), snapshot);
    }
}

#[test]
fn summaries_of_archived_submissions_are_read_and_written() {
    let (head, _) = archived_array();
    let (rest, parts) = head.split_for_snapshot(10);
    let parts: Vec<SnapshotPart> = parts.collect();
    let text = String::from_utf8(encode_part(&parts[0]).unwrap()).unwrap();
    assert_eq!(text, include_str!("../../tests/golden/archived-6.json").trim_end());
    assert_eq!(decode_part(FORMAT, text.as_bytes()).unwrap(), parts[0]);
    assert_eq!(Head::from_snapshot(rest, parts).unwrap(), head);
}

/// Snapshots of heads that no backup was restored to do not mention it.
#[test]
fn a_restored_backup_is_read_and_written() {
    let (mut head, _) = archived_array();
    let restored = Event::BackupRestored { last_number: 5_000_000, attempt_gap: 1_000 };
    head.handle(Time::from_micros(7), restored, &mut Vec::new());
    let (rest, parts) = head.split_for_snapshot(10);
    let text = String::from_utf8(encode_head(&rest).unwrap()).unwrap();
    assert!(
        text.contains(r#""last_number":5000000,"restored_backup":{"at":7,"attempt_gap":1000}"#),
        "{text}"
    );
    let decoded = decode_head(FORMAT, text.as_bytes()).unwrap().head;
    assert_eq!(Head::from_snapshot(decoded, parts.collect()).unwrap(), head);
}

/// A part of format 5 that has a job in this state.
fn part_with(state: &str) -> (String, Value) {
    for line in SNAPSHOTS_5.lines() {
        let stored: Value = serde_json::from_str(line).unwrap();
        for part in stored["parts"].as_array().unwrap() {
            let mut jobs = part["jobs"].as_object().unwrap().iter();
            if let Some((id, _)) = jobs.find(|(_, job)| job["state"] == state) {
                return (id.clone(), part.clone());
            }
        }
    }
    panic!("no snapshot has a job that is {state}")
}

#[test]
fn a_job_whose_fields_contradict_each_other_is_named() {
    let wrong_ends = [("PENDING", "COMPLETED"), ("RUNNING", "PENDING"), ("COMPLETED", "RUNNING")];
    for (state, wrong) in wrong_ends {
        let (id, mut part) = part_with(state);
        part["jobs"][&id]["state"] = json!(wrong);
        let refusal = decode_part(5, part.to_string().as_bytes()).unwrap_err().to_string();
        assert!(refusal.starts_with(&format!("job {id}: its state is {wrong}, but it has")), "{refusal}");
    }
    let (id, mut part) = part_with("COMPLETED");
    (part["jobs"][&id]["exit_code"], part["jobs"][&id]["signal"]) = (json!(1), json!(9));
    let refusal = decode_part(5, part.to_string().as_bytes()).unwrap_err().to_string();
    assert_eq!(refusal, format!("job {id}: it has an exit code and a signal"));
}

/// Formats 1 to 4 have the jobs with the head.
#[test]
fn a_head_that_is_stored_as_a_whole_has_its_jobs() {
    let line = SNAPSHOTS_5.lines().nth(1).unwrap();
    let stored: Value = serde_json::from_str(line).unwrap();
    let (mut whole, part) = (stored["head"].clone(), &stored["parts"][0]);
    for field in ["submissions", "jobs", "eligible"] {
        whole[field] = part[field].clone();
    }
    let DecodedHead { head, jobs } = decode_head(4, whole.to_string().as_bytes()).unwrap();
    let (expected, parts) = read(5, line);
    assert_eq!((head, jobs.as_ref()), (expected, parts.first()));
}

#[test]
fn an_unknown_format_of_a_snapshot_is_refused() {
    for format in [0, FORMAT + 1] {
        let head = decode_head(format, b"{}").unwrap_err();
        let part = decode_part(format, b"{}").unwrap_err();
        for refusal in [head, part] {
            assert!(matches!(refusal, JournalDecodeError::UnknownFormat { found } if found == format));
        }
    }
}

#[test]
#[ignore = "writes the golden files of a new format; run it by hand"]
fn write_the_golden_snapshots() {
    let lines: Vec<String> = SNAPSHOTS_5.lines().map(|line| write(&read(5, line)) + "\n").collect();
    let path = format!("{}/tests/golden/snapshots-{FORMAT}.jsonl", env!("CARGO_MANIFEST_DIR"));
    std::fs::write(path, lines.concat()).unwrap();
}
