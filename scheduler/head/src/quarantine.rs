//! Sets an event aside that no head can replay, and keeps it.
//!
//! The event moves to the table `quarantine` of the journal. In its place comes one that any head can replay
//! and that later events can follow: for a submission, a job of the same number and user that is held and
//! says what happened; for anything else, a look at the clock. Whoever asked for it was never told that it
//! was done, because the head died before.

use std::path::Path;

use cohabit_journal::{FORMAT, decode_event, encode_event};
use cohabit_scheduler_core::Event;
use cohabit_types::{ClientRequestId, Demand, GpuRequest, JobSpec, Principal, Request, Role, Submit};
use rusqlite::{Connection, OptionalExtension, Row};

use crate::HeadError;
use crate::clock::wall_clock;
use crate::driver::describe_event;
use crate::journal::{LogRepair, RepairedLog, SqliteJournal, repair_log};
use crate::recovery::{noted_event, recover_watched};
use crate::replay_watch::ReplayNoteFile;
use crate::sql::{no_json, sqlite_error};
use crate::state_dir::StateDir;

/// An event that stops the replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreplayableEvent {
    /// Its number.
    pub event: u64,
    /// What it is, in one line, without arguments and environments.
    pub what: String,
    /// Why it cannot be replayed.
    pub why: String,
}

const CREATE: &str = "CREATE TABLE IF NOT EXISTS quarantine (\
    sequence INTEGER PRIMARY KEY, at INTEGER NOT NULL, event TEXT NOT NULL, format INTEGER NOT NULL, \
    why TEXT NOT NULL, quarantined_at INTEGER NOT NULL) STRICT";

/// The event of the journal in this state directory that stops the replay, if one does. Blocks.
///
/// # Errors
/// When a head uses the directory, or the journal cannot be read for another reason.
pub fn unreplayable_event(state: &Path) -> Result<Option<UnreplayableEvent>, HeadError> {
    let state = open_existing(state)?;
    find(&state)
}

/// Sets this event aside, if it is the one that stops the replay. Blocks.
///
/// # Errors
/// As [`unreplayable_event`], and when it is not that event; then nothing has changed.
pub fn quarantine(state: &Path, event: u64) -> Result<UnreplayableEvent, HeadError> {
    let state = open_existing(state)?;
    let found = find(&state)?.filter(|found| found.event == event).ok_or(HeadError::Replayable { event })?;
    let path = state.journal();
    let connection = Connection::open(&path).map_err(sqlite_error(&path))?;
    replace(connection, &found).map_err(sqlite_error(&path))?;
    ReplayNoteFile::beside(&path).remove()?;
    Ok(found)
}

/// Lets the next start replay everything again, also an event with which earlier starts have ended. Blocks.
///
/// # Errors
/// When a head uses the directory, or the note on that event cannot be removed.
pub fn retry_replay(state: &Path) -> Result<(), HeadError> {
    let state = open_existing(state)?;
    ReplayNoteFile::beside(&state.journal()).remove()
}

/// Repairs the write-ahead log of the journal, if it is damaged inside. On an error, nothing has changed.
/// Blocks.
///
/// # Errors
/// When a head uses the directory, or the log cannot be repaired in this way.
pub fn repair_journal(state: &Path, repair: LogRepair) -> Result<Option<RepairedLog>, HeadError> {
    let state = open_existing(state)?;
    repair_log(&state.journal(), repair)
}

/// Whether this event was set aside; asked while the journal may be in use.
pub(crate) fn is_quarantined(journal: &Path, event: u64) -> bool {
    let found = Connection::open(journal).and_then(|connection| {
        connection.query_row("SELECT count(*) FROM quarantine WHERE sequence = ?1", [event], |row| row.get(0))
    });
    // The table is made by the first quarantine.
    found.unwrap_or(0u64) > 0
}

/// The state directory of a head that has run: a mistaken path is no healthy head.
fn open_existing(state: &Path) -> Result<StateDir, HeadError> {
    if !StateDir::journal_in(state).is_file() {
        return Err(HeadError::NoJournal(state.to_owned()));
    }
    StateDir::open(state)
}

fn find(state: &StateDir) -> Result<Option<UnreplayableEvent>, HeadError> {
    let path = state.journal();
    let journal = SqliteJournal::open(&path)?;
    let (event, why) = match noted_event(&path, &journal)? {
        Some(note) => (note.event, HeadError::fatal_at_starts(note.starts)),
        None => match recover_watched(&path, &journal) {
            Ok(_) => return Ok(None),
            Err(HeadError::CannotReplay { event, why, .. }) => (event, why),
            Err(error) => return Err(error),
        },
    };
    drop(journal);
    let connection = Connection::open(&path).map_err(sqlite_error(&path))?;
    let found = event_text(&connection, event).map_err(sqlite_error(&path))?;
    Ok(found.map(|(text, format)| {
        let what = match decode_event(format, &text) {
            Ok(event) => describe_event(&event),
            Err(_) if submitter(&text).is_some() => "a damaged submission".to_owned(),
            Err(_) => "a damaged event".to_owned(),
        };
        UnreplayableEvent { event, what, why }
    }))
}

fn event_text(connection: &Connection, event: u64) -> rusqlite::Result<Option<(String, u32)>> {
    let wanted = "SELECT event, format FROM events WHERE sequence = ?1";
    // A damaged text may be no UTF-8.
    let columns = |row: &Row<'_>| {
        let text = String::from_utf8_lossy(row.get_ref(0)?.as_bytes()?).into_owned();
        Ok((text, row.get(1)?))
    };
    connection.query_row(wanted, [event], columns).optional()
}

fn replace(mut connection: Connection, found: &UnreplayableEvent) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    transaction.execute(CREATE, [])?;
    let keep =
        "INSERT INTO quarantine SELECT sequence, at, event, format, ?2, ?3 FROM events WHERE sequence = ?1";
    transaction.execute(keep, (found.event, &found.why, wall_clock().as_micros()))?;
    let (text, format) =
        event_text(&transaction, found.event)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    let harmless = match decode_event(format, &text) {
        Ok(event) => harmless(event, found),
        Err(_) => harmless_for_damaged(&text, found),
    };
    let text = encode_event(&harmless).map_err(no_json)?;
    let update = "UPDATE events SET event = ?2, format = ?3 WHERE sequence = ?1";
    transaction.execute(update, (found.event, text, FORMAT))?;
    transaction.commit()
}

/// What comes in the place of an event.
fn harmless(event: Event, found: &UnreplayableEvent) -> Event {
    match event {
        Event::Client(client, by, Request::Submit(submit)) => {
            let idempotency_key = submit.idempotency_key.clone();
            let submit = Submit { spec: placeholder(&submit.spec, found), idempotency_key, estimate: None };
            Event::Client(client, by, Request::Submit(Box::new(submit)))
        }
        Event::Client(..)
        | Event::HeadStarted(_)
        | Event::Joined(..)
        | Event::Lost(..)
        | Event::Report(..)
        | Event::Planned(..)
        | Event::Alarm
        | Event::InterferenceUpdated
        | Event::ClockSet(_)
        | Event::Restored(_)
        | Event::BackupRestored { .. } => Event::Alarm,
    }
}

/// What comes in the place of an event that cannot be decoded. Jobs are numbered in the order of their
/// submissions, so a damaged one needs a job in its place, or all later jobs would change their numbers.
fn harmless_for_damaged(text: &str, found: &UnreplayableEvent) -> Event {
    let Some(user) = submitter(text) else { return Event::Alarm };
    let spec = placeholder(&JobSpec::command(vec!["damaged".to_owned()], "/".to_owned()), found);
    let submit = Submit { spec, idempotency_key: None, estimate: None };
    let by = Principal::new(user, Role::User);
    Event::Client(ClientRequestId(0), by, Request::Submit(Box::new(submit)))
}

/// Who submitted the job of this damaged event, if it is a submission.
fn submitter(text: &str) -> Option<&str> {
    let is_submission = text.contains("\"Submit\":") && text.contains("\"spec\":");
    let user = text.split_once("\"user\":\"").and_then(|(_, rest)| rest.split_once('"'));
    let is_name =
        |name: &&str| !name.is_empty() && name.len() <= 64 && !name.contains(char::REPLACEMENT_CHARACTER);
    is_submission.then(|| user.map(|(name, _)| name).filter(is_name).unwrap_or("unknown"))
}

/// A job that takes the number of a submission which was set aside, and tells its user so.
fn placeholder(spec: &JobSpec, found: &UnreplayableEvent) -> JobSpec {
    let name: String = spec.name.chars().take(100).collect();
    let told =
        format!("echo 'an admin set this job aside: event {} of the journal {}'", found.event, found.why);
    let command = vec!["sh".to_owned(), "-c".to_owned(), told];
    let demand = Demand { gpus: GpuRequest::Whole(0), ..Demand::default() };
    JobSpec { name, held: true, demand, ..JobSpec::command(command, "/".to_owned()) }
}
