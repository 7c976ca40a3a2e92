//! What must hold of journals and requests, whatever a disk or a client made of them, for `integration/fuzz`.
//!
//! Every function takes any bytes and panics where a promise is broken.

use std::fs;
use std::path::Path;

use cohabit_scheduler_core::{Event, Head, SnapshotPart};
use cohabit_types::{Inventory, JobSpec, Report, Request};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::journal::{Journal, SqliteJournal};
use crate::sessions::admit;

/// What the columns of a journal hold: an event, or a head, or a part of one. The first byte chooses which.
pub fn journal_entries(bytes: &[u8]) {
    match bytes.split_first() {
        Some((b's', head)) => settles::<Head>(head),
        Some((b'p', part)) => settles::<SnapshotPart>(part),
        Some((_, event)) => settles::<Event>(event),
        None => {}
    }
}

/// What is understood is written in a form that is understood, and means the same.
fn settles<T: Serialize + DeserializeOwned>(text: &[u8]) {
    let Ok(meant) = serde_json::from_slice::<T>(text) else { return };
    let written = serde_json::to_vec(&meant).expect("what a journal holds has a JSON form");
    let again = serde_json::from_slice::<T>(&written).expect("what was written can be read");
    assert_eq!(serde_json::to_vec(&again).expect("it was written before"), written);
}

/// The file of a journal: what is no journal, or a damaged one, is told by its name. The folder is for the
/// file alone.
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
