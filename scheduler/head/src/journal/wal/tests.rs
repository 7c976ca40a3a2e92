//! Damage in the write-ahead log of a head that was killed.

use std::fs;
use std::path::PathBuf;

use cohabit_scheduler_core::Event;
use cohabit_types::Request;

use super::paths::with_suffix;
use super::scan::{FRAME_HEADER, LOG_HEADER};
use super::*;
use crate::HeadError;
use crate::journal::{Journal, SqliteJournal};
use crate::test_kit::{TestJournal, one_job, submit, writes};

const FRAME: usize = FRAME_HEADER + 4_096;

/// A journal as a kill leaves it, with a commit in the log for each of these events.
fn killed(events: Vec<Event>) -> TestJournal {
    let journal = TestJournal::new();
    // The tables go into the file.
    drop(journal.open());
    let mut open = journal.open();
    for write in writes(events) {
        open.commit(&[write]).unwrap();
    }
    let files = [journal.path.clone(), log_of(&journal.path)];
    let contents = files.clone().map(|file| fs::read(file).unwrap());
    drop(open);
    files.iter().zip(contents).for_each(|(file, content)| fs::write(file, content).unwrap());
    journal
}

/// Changes a byte of the log.
fn flip(journal: &TestJournal, at: usize) {
    let log = log_of(&journal.path);
    let mut bytes = fs::read(&log).unwrap();
    bytes[at] ^= 0x40;
    fs::write(log, bytes).unwrap();
}

/// The bytes of the page in the frame of this index.
fn page(index: usize) -> usize {
    LOG_HEADER + index * FRAME + FRAME_HEADER
}

/// The first frame whose page is written again by a later one, if `again`, or the last one that is not.
fn frame(journal: &TestJournal, again: bool) -> usize {
    let bytes = fs::read(log_of(&journal.path)).unwrap();
    let pages: Vec<&[u8]> = bytes[LOG_HEADER..].chunks(FRAME).map(|frame| &frame[..4]).collect();
    let is_again = |index: &usize| pages[index + 1..].contains(&pages[*index]);
    let mut indexes = 1..pages.len() - 2;
    match again {
        true => indexes.find(is_again),
        false => indexes.rfind(|index| !is_again(index)),
    }
    .unwrap()
}

fn refusal(journal: &TestJournal) -> String {
    let files = [journal.path.clone(), log_of(&journal.path)];
    let read = || files.clone().map(|file| fs::read(file).unwrap());
    let before = read();
    let error = SqliteJournal::open(&journal.path).unwrap_err();
    assert!(matches!(error, HeadError::LogDamaged(_)), "{error}");
    assert!(read() == before, "a refused journal is left as it is");
    error.to_string()
}

fn events(journal: &TestJournal) -> usize {
    journal.open().load().unwrap().tail.len()
}

fn damaged_log(journal: &TestJournal) -> PathBuf {
    with_suffix(&log_of(&journal.path), ".damaged")
}

#[test]
fn damage_inside_the_log_is_reported_with_what_is_behind_it_and_salvaged() {
    // In the page, and in the checksum of the frame.
    for offset in [2_000, 20 - FRAME_HEADER as isize] {
        let journal = killed(one_job());
        let index = frame(&journal, true);
        flip(&journal, page(index).checked_add_signed(offset).unwrap());
        let refusal = refusal(&journal);
        let begin =
            format!("journal.sqlite-wal of the journal is damaged at byte {}", LOG_HEADER + index * FRAME);
        for part in [&*begin, " to 7), 2 of them submissions", "--salvage`, which loses nothing;", "--cut"] {
            assert!(refusal.contains(part), "no {part}: {refusal}");
        }
        let before = fs::read(log_of(&journal.path)).unwrap();
        let repaired = repair_log(&journal.path, LogRepair::Salvage).unwrap().unwrap();
        assert_eq!(repaired, RepairedLog { last_event: 7, kept: damaged_log(&journal) });
        assert!(fs::read(damaged_log(&journal)).unwrap() == before);
        assert_eq!(events(&journal), 7);
        assert_eq!(repair_log(&journal.path, LogRepair::Salvage).unwrap(), None);
        assert!(!journal.path.with_file_name("repair").exists());
    }
}

#[test]
fn without_a_later_copy_of_the_damaged_page_the_log_can_only_be_cut() {
    let mut events_of_job = one_job();
    let mut long = submit();
    long.spec.environment.insert("LONG".into(), "x".repeat(20_000));
    let by = crate::test_kit::ada();
    let request = Request::Submit(Box::new(long));
    events_of_job.insert(6, Event::Client(cohabit_types::ClientRequestId(3), by, request));
    let journal = killed(events_of_job);
    let index = frame(&journal, false);
    flip(&journal, page(index) + 2_000);
    let refusal = refusal(&journal);
    assert!(refusal.contains("up to event 6") && refusal.contains("here it will refuse"), "{refusal}");
    let error = repair_log(&journal.path, LogRepair::Salvage).unwrap_err().to_string();
    assert!(error.contains("recover --cut"), "{error}");
    assert!(!damaged_log(&journal).exists());
    let repaired = repair_log(&journal.path, LogRepair::Cut).unwrap().unwrap();
    assert_eq!((repaired.last_event, events(&journal)), (6, 6));
    assert!(damaged_log(&journal).exists());
}

#[test]
fn a_log_whose_header_is_damaged_is_reported_and_salvaged() {
    let journal = killed(one_job());
    flip(&journal, 13);
    let refusal = refusal(&journal);
    assert!(
        refusal.contains("at byte 0: its header cannot be read; 0 frames before it are sound, up to event 0"),
        "{refusal}"
    );
    assert!(refusal.contains("7 readable events (1 to 7)"), "{refusal}");
    repair_log(&journal.path, LogRepair::Salvage).unwrap().unwrap();
    assert_eq!(events(&journal), 7);
}

/// A loss of power leaves the last commit without its end, or with a gap.
#[test]
fn a_torn_end_of_the_log_is_cut() {
    let journal = killed(one_job());
    let log = log_of(&journal.path);
    let whole = fs::read(&log).unwrap();
    let file = fs::read(&journal.path).unwrap();
    let cuts = [whole.len() - 1, whole.len() - 3_000];
    for cut in cuts {
        fs::write(&journal.path, &file).unwrap();
        fs::write(&log, &whole[..cut]).unwrap();
        assert_eq!(events(&journal), 6);
    }
    fs::write(&journal.path, &file).unwrap();
    fs::write(&log, &whole).unwrap();
    flip(&journal, whole.len() - 1_000);
    assert_eq!(events(&journal), 6);
    assert!(!damaged_log(&journal).exists());
}

/// SQLite begins the log again at its start; frames of the round before stay behind the new ones.
#[test]
fn frames_of_an_earlier_round_are_no_damage() {
    let journal = killed(one_job());
    let mut open = journal.open();
    let connection = rusqlite::Connection::open(&journal.path).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(())).unwrap();
    open.commit(&writes(one_job())[6..]).unwrap();
    let files = [journal.path.clone(), log_of(&journal.path)];
    let contents = files.clone().map(|file| fs::read(file).unwrap());
    drop((open, connection));
    files.iter().zip(contents).for_each(|(file, content)| fs::write(file, content).unwrap());
    assert_eq!(events(&journal), 8);
}
