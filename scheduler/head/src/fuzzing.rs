//! Properties of journals and requests that must hold for arbitrary bytes, for `integration/fuzz`.
//!
//! Every function takes any bytes and panics if a property does not hold.

use std::fs;
use std::path::Path;

use cohabit_scheduler_core::{Event, Head, SnapshotPart};
use cohabit_types::{Inventory, JobSpec, Report, Request};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::journal::{Journal, SqliteJournal};
use crate::sessions::admit;

/// Decodes a column of a journal: an event, a head, or a part of one. The first byte selects which.
pub fn journal_entries(bytes: &[u8]) {
    match bytes.split_first() {
        Some((b's', head)) => round_trips::<Head>(head),
        Some((b'p', part)) => round_trips::<SnapshotPart>(part),
        Some((_, event)) => round_trips::<Event>(event),
        None => {}
    }
}

/// What can be decoded is encoded to text that decodes to the same.
fn round_trips<T: Serialize + DeserializeOwned>(text: &[u8]) {
    let Ok(decoded) = serde_json::from_slice::<T>(text) else { return };
    let written = serde_json::to_vec(&decoded).expect("it has a JSON form");
    let again = serde_json::from_slice::<T>(&written).expect("encoded text can be decoded");
    assert_eq!(serde_json::to_vec(&again).expect("it has a JSON form"), written);
}

/// Opens a journal file. The error of a file that is not a journal, or is damaged, names the file. The
/// folder must hold nothing else.
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

/// Whether a session passes a dry run of this job on to the head.
pub fn admits_job(spec: &JobSpec) -> bool {
    admit::job(spec).is_ok()
}

/// The inventory as a session passes it on to the head.
pub fn admitted_inventory(inventory: Inventory) -> Inventory {
    admit::inventory(inventory)
}

/// The reports as a session passes them on to the head.
pub fn admitted_reports(reports: Vec<Report>) -> Vec<Report> {
    admit::reports(reports)
}
