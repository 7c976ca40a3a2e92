//! Promises about journals and requests that hold for any input, for `integration/fuzz`.
//!
//! Every function takes arbitrary bytes and panics where a promise is broken.

use std::fs;
use std::path::Path;

use cohabit_journal::{decode_event, encode_event};
use cohabit_scheduler_core::{Head, SnapshotPart};
use cohabit_types::{Inventory, JobSpec, Report, Request};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::journal::{Journal, SqliteJournal};
use crate::sessions::admit;

/// What the columns of a journal hold: an event of format 6 or 5, or a head, or a part of one. The first byte
/// chooses which.
pub fn journal_entries(bytes: &[u8]) {
    match bytes.split_first() {
        Some((b's', head)) => check_round_trip::<Head>(head),
        Some((b'p', part)) => check_round_trip::<SnapshotPart>(part),
        Some((b'6', event)) => check_event(6, event),
        Some((_, event)) => check_event(5, event),
        None => {}
    }
}

/// An event that can be read is written in the newest format, and means the same there.
fn check_event(format: u32, text: &[u8]) {
    let Some(event) = str::from_utf8(text).ok().and_then(|text| decode_event(format, text).ok()) else {
        return;
    };
    let written = encode_event(&event).expect("a decoded event has a JSON form");
    let again = decode_event(cohabit_journal::FORMAT, &written).expect("what was written can be read");
    assert_eq!(encode_event(&again).expect("it was written before"), written);
}

/// What can be read is written in a form that can be read, and means the same.
fn check_round_trip<T: Serialize + DeserializeOwned>(text: &[u8]) {
    let Ok(meant) = serde_json::from_slice::<T>(text) else { return };
    let written = serde_json::to_vec(&meant).expect("what a journal holds has a JSON form");
    let again = serde_json::from_slice::<T>(&written).expect("what was written can be read");
    assert_eq!(serde_json::to_vec(&again).expect("it was written before"), written);
}

/// The file of a journal: the error about a damaged one names it. The folder is for this file alone.
pub fn journal_file(folder: &Path, bytes: &[u8]) {
    for entry in fs::read_dir(folder).expect("the folder is there").flatten() {
        fs::remove_file(entry.path()).expect("it holds files only");
    }
    let path = folder.join("journal.sqlite");
    fs::write(&path, bytes).expect("the folder is writable");
    let loaded = SqliteJournal::open(&path).and_then(|journal| journal.load());
    if let Err(error) = loaded {
        assert!(error.to_string().contains("journal.sqlite"), "{error}");
    }
}

/// Whether a session passes this request on to the head.
pub fn admits(request: &Request) -> bool {
    admit::request(request).is_ok()
}

/// Whether a session has the head consider this job.
pub fn admits_job(spec: &JobSpec) -> bool {
    admit::job(spec).is_ok()
}

/// What of an inventory a session passes on to the head.
pub fn admitted_inventory(inventory: Inventory) -> Inventory {
    admit::inventory(inventory)
}

/// What of reports a session passes on to the head.
pub fn admitted_reports(reports: Vec<Report>) -> Vec<Report> {
    admit::reports(reports)
}
