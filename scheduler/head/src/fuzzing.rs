//! Promises about journals and requests that hold for any input, for `integration/fuzz`.
//!
//! Every function takes arbitrary bytes and panics where a promise is broken.

use std::fs;
use std::path::Path;

use cohabit_journal::{
    FORMAT, decode_event, decode_head, decode_part, encode_event, encode_head, encode_part,
};
use cohabit_scheduler_core::{Head, SnapshotPart};
use cohabit_types::{Inventory, JobSpec, Report, Request};

use crate::RequestLimits;
use crate::journal::{Journal, SqliteJournal};
use crate::sessions::admit;

/// What the columns of a journal hold: an event, or part 0 of a snapshot, or another part, of format 6 or 5.
/// The first byte chooses which.
pub fn journal_entries(bytes: &[u8]) {
    match bytes.split_first() {
        Some((b'S', head)) => check_head(6, head),
        Some((b's', head)) => check_head(5, head),
        Some((b'P', part)) => check_part(6, part),
        Some((b'p', part)) => check_part(5, part),
        Some((b'6', event)) => check_event(6, event),
        Some((_, event)) => check_event(5, event),
        None => {}
    }
}

/// Part 0 that can be read is written in the newest format, and means the same there. Whatever it holds, the
/// check of the invariants answers.
fn check_head(format: u32, text: &[u8]) {
    let Ok(decoded) = decode_head(format, text) else { return };
    let written = encode_head(&decoded.head).expect("a decoded head has a JSON form");
    let again = decode_head(FORMAT, &written).expect("what was written can be read");
    assert_eq!(again.head, decoded.head);
    decoded.jobs.iter().for_each(check_written_part);
    if let Ok(head) = Head::from_snapshot(decoded.head, decoded.jobs.into_iter().collect()) {
        let _ = head.check();
    }
}

/// The same for another part.
fn check_part(format: u32, text: &[u8]) {
    if let Ok(part) = decode_part(format, text) {
        check_written_part(&part);
    }
}

fn check_written_part(part: &SnapshotPart) {
    let written = encode_part(part).expect("a decoded part has a JSON form");
    assert_eq!(decode_part(FORMAT, &written).expect("what was written can be read"), *part);
}

/// An event that can be read is written in the newest format, and means the same there.
fn check_event(format: u32, text: &[u8]) {
    let Some(event) = str::from_utf8(text).ok().and_then(|text| decode_event(format, text).ok()) else {
        return;
    };
    let written = encode_event(&event).expect("a decoded event has a JSON form");
    let again = decode_event(FORMAT, &written).expect("what was written can be read");
    assert_eq!(encode_event(&again).expect("it was written before"), written);
}

/// The file of a journal: the error about a damaged one names it. The directory is for this file alone.
pub fn journal_file(folder: &Path, bytes: &[u8]) {
    for entry in fs::read_dir(folder).expect("the directory is there").flatten() {
        fs::remove_file(entry.path()).expect("it holds files only");
    }
    let path = folder.join("journal.sqlite");
    fs::write(&path, bytes).expect("the directory is writable");
    let loaded = SqliteJournal::open(&path).and_then(|journal| journal.load());
    if let Err(error) = loaded {
        assert!(error.to_string().contains("journal.sqlite"), "{error}");
    }
}

/// Whether a session passes this request on to the head.
pub fn admits(request: &Request) -> bool {
    RequestLimits::default().check(request).is_ok()
}

/// Whether a session passes a dry run of this job on to the head.
pub fn admits_job(spec: &JobSpec) -> bool {
    RequestLimits::default().check_job(spec).is_ok()
}

/// The inventory as a session passes it on to the head, if it does.
pub fn admitted_inventory(inventory: Inventory) -> Option<Inventory> {
    admit::check(&inventory).ok()?;
    Some(admit::inventory(inventory))
}

/// The reports as a session passes them on to the head.
pub fn admitted_reports(reports: Vec<Report>) -> Vec<Report> {
    admit::reports(reports)
}
