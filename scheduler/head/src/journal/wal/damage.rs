//! Damage inside the log: what is behind it, and the two ways to go on.
//!
//! A log holds whole pages. Where every damaged page was written once more behind the damage, the later
//! copies make the journal whole ([`LogRepair::Salvage`]). Otherwise what is behind the damage can only be
//! dropped ([`LogRepair::Cut`]). Neither changes the journal's file, and the damaged log stays beside it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use cohabit_journal::decode_event;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::super::load::{is_submission, last_sequence};
use super::paths::{log_of, with_suffix};
use super::rewrite::rewrite;
use super::scan::{FRAME_HEADER, HeaderState, LOG_HEADER, LogScan};

use crate::HeadError;
use crate::sql::{corrupt, sqlite_error};

/// Damage inside a log, and what is behind it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the write-ahead log {} of the journal is damaged at byte {offset}: {}{before}. Behind the damage, {behind}. \
     Nothing was overwritten. Copy the state directory; do not open the journal with another program, which would \
     drop what is behind the damage. Then run `cohabit head recover --salvage`, which loses nothing{}; only if it \
     refuses, `cohabit head recover --cut` continues with what is before the damage",
    log.display(),
    if *is_header { "its header cannot be read; " } else { "" },
    if *can_salvage { "" } else { " (here it will refuse: the damaged page was not written again)" },
)]
struct WalDamage {
    log: PathBuf,
    /// Where the first damaged frame begins.
    offset: u64,
    is_header: bool,
    before: FramesBefore,
    behind: FramesBehind,
    can_salvage: bool,
}

/// What SQLite would continue with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{frames} frames before it are sound, up to event {event}")]
struct FramesBefore {
    frames: usize,
    event: u64,
}

/// What SQLite would drop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{frames} frames in {commits} commits are sound, with {events}; {damaged} frames are damaged")]
struct FramesBehind {
    frames: usize,
    commits: usize,
    damaged: usize,
    events: EventsBehind,
}

/// The events behind the damage.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum EventsBehind {
    #[error("no events")]
    None,
    #[error("{count} readable events ({first} to {last}), {submissions} of them submissions of jobs")]
    Some { count: u64, first: u64, last: u64, submissions: u64 },
}

/// How to go on from a damaged log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogRepair {
    /// With everything, where later copies of the damaged pages make the journal whole.
    Salvage,
    /// Without the damaged commit and what is behind it.
    Cut,
}

/// What a repair did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairedLog {
    /// The last event that the journal has.
    pub last_event: u64,
    /// Where the damaged log is.
    pub kept: PathBuf,
}

/// Refuses a journal with a log that is damaged inside. Blocks.
pub(crate) fn check_log(journal: &Path) -> Result<(), HeadError> {
    let log = log_of(journal);
    let Some(scan) = LogScan::read(journal, &log).map_err(HeadError::state(&log))? else { return Ok(()) };
    if scan.is_damaged_inside() {
        return Err(HeadError::LogDamaged(describe(journal, &log, &scan)?.to_string()));
    }
    let torn = scan.frames.len() - scan.sound_start();
    if torn > 0 {
        tracing::warn!(
            log = %log.display(),
            "the last commit was not written to its end and is dropped, with {torn} frames behind the gap: a loss of \
             power does that"
        );
    }
    Ok(())
}

/// Repairs a damaged log; none if it is not damaged inside. On an error, nothing has changed. Blocks.
pub(crate) fn repair_log(journal: &Path, repair: LogRepair) -> Result<Option<RepairedLog>, HeadError> {
    let log = log_of(journal);
    let scan = LogScan::read(journal, &log).map_err(HeadError::state(&log))?;
    let Some(scan) = scan.filter(LogScan::is_damaged_inside) else { return Ok(None) };
    if repair == LogRepair::Salvage && !can_salvage(&scan) {
        let what = "a page is damaged in the write-ahead log that was not written again behind the damage, so \
                    what is behind it cannot be used: `cohabit head recover --cut` continues without it";
        return Err(corrupt(journal, what));
    }
    let kept = with_suffix(&log, ".damaged");
    if kept.exists() {
        let what = format!("an earlier damaged log is still there: move {} away first", kept.display());
        return Err(corrupt(journal, what));
    }
    let trial = Trial::of(journal, &log, &scan, repair)?;
    let last_event = trial.last_event_if_whole(journal)?;
    let replace = || {
        fs::hard_link(&log, &kept).or_else(|_| fs::copy(&log, &kept).map(drop))?;
        remove_if_there(&with_suffix(journal, "-shm"))?;
        fs::rename(log_of(&trial.journal), &log)?;
        journal.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    };
    replace().map_err(HeadError::state(&log))?;
    Ok(Some(RepairedLog { last_event, kept }))
}

fn describe(journal: &Path, log: &Path, scan: &LogScan) -> Result<WalDamage, HeadError> {
    let start = scan.sound_start();
    let behind = &scan.frames[start..];
    let offset = match scan.header {
        HeaderState::Damaged => 0,
        HeaderState::Sound => (LOG_HEADER + start * (FRAME_HEADER + scan.page_size)) as u64,
    };
    let event = Trial::of(journal, log, scan, LogRepair::Cut)?.last_event();
    let events = Trial::of(journal, log, scan, LogRepair::Salvage)?.events_after(event);
    let sound = behind.iter().filter(|it| it.is_sound);
    Ok(WalDamage {
        log: log.to_owned(),
        offset,
        is_header: scan.header == HeaderState::Damaged,
        before: FramesBefore { frames: start, event },
        behind: FramesBehind {
            frames: sound.clone().count(),
            commits: sound.filter(|it| it.ends_commit).count(),
            damaged: behind.iter().filter(|it| !it.is_sound).count(),
            events,
        },
        can_salvage: can_salvage(scan),
    })
}

/// Whether every damaged page was written again, by a commit that is whole.
fn can_salvage(scan: &LogScan) -> bool {
    let last_commit = scan.frames.iter().rposition(|it| it.is_sound && it.ends_commit).unwrap_or(0);
    let written_after = |index: usize, page: u32| {
        scan.frames[index..=last_commit.max(index)].iter().any(|it| it.is_sound && it.page == Some(page))
    };
    let mut damaged = scan.frames.iter().enumerate().filter(|(_, it)| !it.is_sound);
    damaged.all(|(index, it)| it.page.is_some_and(|page| written_after(index, page)))
}

/// The journal with a rewritten log, in a directory beside it.
struct Trial {
    folder: PathBuf,
    journal: PathBuf,
}

impl Trial {
    fn of(journal: &Path, log: &Path, scan: &LogScan, repair: LogRepair) -> Result<Trial, HeadError> {
        let folder = journal.with_file_name("repair");
        let trial = Trial { journal: folder.join("journal.sqlite"), folder };
        let start = scan.sound_start();
        let is_wanted = |index: usize| match repair {
            LogRepair::Salvage => scan.frames[index].is_sound,
            LogRepair::Cut => index < start,
        };
        let create = || {
            trial.remove()?;
            fs::create_dir(&trial.folder)?;
            // The same file where the file system can do that: a journal may be large, and it is only read.
            fs::hard_link(journal, &trial.journal)
                .or_else(|_| fs::copy(journal, &trial.journal).map(drop))?;
            rewrite(log, scan, is_wanted, &log_of(&trial.journal))
        };
        create().map_err(HeadError::state(&trial.folder))?;
        Ok(trial)
    }

    fn remove(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// The log must not be moved into the file, which is also the damaged journal's.
    fn open(&self) -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags(&self.journal, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        Ok(connection)
    }

    /// The last event that can be read; 0 if none can.
    fn last_event(&self) -> u64 {
        self.open().and_then(|connection| last_sequence(&connection)).unwrap_or(0)
    }

    /// The last event, if this journal would be whole with the rewritten log.
    fn last_event_if_whole(&self, journal: &Path) -> Result<u64, HeadError> {
        let look = || {
            let connection = self.open()?;
            let check = "PRAGMA integrity_check(1)";
            let found: String = connection.query_row(check, [], |row| row.get(0))?;
            Ok((found, last_sequence(&connection)?))
        };
        let (found, last) = look().map_err(sqlite_error(journal))?;
        if found == "ok" { Ok(last) } else { Err(corrupt(journal, found)) }
    }

    /// What can be read of the events after this one: damaged pages may hide some.
    fn events_after(&self, event: u64) -> EventsBehind {
        let mut behind = EventsBehind::None;
        // An error ends what can be read, and the count is of what was.
        let _ = self.open().and_then(|connection| {
            let wanted = "SELECT sequence, format, event FROM events WHERE sequence > ?1 ORDER BY sequence";
            let mut query = connection.prepare(wanted)?;
            let mut rows = query.query([event])?;
            while let Some(row) = rows.next()? {
                behind.add(row.get(0)?, row.get(1)?, &row.get::<_, String>(2)?);
            }
            Ok(())
        });
        behind
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        if let Err(error) = self.remove() {
            tracing::warn!(%error, folder = %self.folder.display(), "cannot be removed");
        }
    }
}

impl EventsBehind {
    fn add(&mut self, sequence: u64, format: u32, text: &str) {
        let Ok(event) = decode_event(format, text) else { return };
        let submission = u64::from(is_submission(&event));
        *self = match *self {
            EventsBehind::None => {
                EventsBehind::Some { count: 1, first: sequence, last: sequence, submissions: submission }
            }
            EventsBehind::Some { count, first, last: _, submissions } => EventsBehind::Some {
                count: count + 1,
                first,
                last: sequence,
                submissions: submissions + submission,
            },
        };
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
