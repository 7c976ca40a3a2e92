//! Restores a backup: everything is checked in a directory of its own, and appears at once.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use cohabit_scheduler_core::Event;
use cohabit_types::{Bytes, Span};
use nix::unistd::syncfs;
use tar::{Archive, Entries, EntryType};

use super::contents::folders_above;
use super::error::BackupError;
use super::hashing_reader::HashingReader;
use super::manifest::{BackupManifest, FORMAT, LARGEST_MANIFEST, MANIFEST, ManifestEntry, ManifestHeader};
use super::number_gap::NumberGap;
use super::target::RestoreTarget;
use crate::HeadError;
use crate::clock::wall_clock;
use crate::journal::{Journal, JournalEntry, JournalWrite, SqliteJournal};
use crate::recovery::recover_and_upgrade;
use crate::state_dir::StateDir;
use crate::state_dir::file_system::space;

/// What the disk needs besides the files, for the journal's log.
const RESERVE: u64 = 64 << 20;

/// How much of a file is read at once, in bytes.
const CHUNK: usize = 128 << 10;

/// How far clocks of two machines may differ.
const CLOCK_SLACK: Span = Span::from_secs(300);

/// A state directory that was restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreSummary {
    /// The state directory.
    pub state: PathBuf,
    /// The id of the cluster.
    pub cluster: String,
    /// When the backup was made, RFC 3339 in UTC.
    pub created_at: String,
    /// How many jobs, and members of arrays, its head has in memory.
    pub jobs: u64,
    /// The highest number of a job in the backup.
    pub last_job: u64,
    /// The number of the next job.
    pub next_job: u64,
}

/// Makes a state directory from a backup. It must not exist, or be empty. Blocks.
///
/// # Errors
/// Why the backup is not restored; then the directory is as it was.
pub fn restore_backup(file: &Path, state: &Path) -> Result<RestoreSummary, BackupError> {
    let target = RestoreTarget::at(state)?;
    let refused = |what: String| BackupError::Refused { file: file.to_owned(), what };
    let opened = File::open(file).map_err(BackupError::io(file))?;
    let found = opened.metadata().map_err(BackupError::io(file))?;
    if !found.is_file() {
        return Err(refused("it is no file".to_owned()));
    }
    let mut archive = Archive::new(BufReader::with_capacity(1 << 20, opened));
    // Raw: entries that only change how the next one is read are refused like any other that is no file.
    let mut entries = archive.entries().map_err(BackupError::io(file))?.raw(true);
    let manifest = read_manifest(file, &mut entries)?;
    manifest.check(found.len()).map_err(refused)?;
    check_room(&target, &manifest)?;
    let workspace = target.workspace()?;
    let folder = workspace.path();
    unpack(&mut entries, &manifest, folder).map_err(|error| match error {
        UnpackError::Archive(what) => refused(what),
        UnpackError::Disk { path, source } => BackupError::Io { path, source },
    })?;
    let numbers = continue_journal(folder, &manifest);
    let numbers = numbers.map_err(|error| journal_damage(&error).map_or(error, refused))?;
    File::open(folder).and_then(|root| Ok(syncfs(&root)?)).map_err(BackupError::io(folder))?;
    target.publish(folder)?;
    Ok(RestoreSummary {
        state: state.to_owned(),
        cluster: manifest.cluster,
        created_at: manifest.created_at,
        jobs: numbers.jobs,
        last_job: numbers.last_job,
        next_job: numbers.next_job,
    })
}

fn check_room(target: &RestoreTarget, manifest: &BackupManifest) -> Result<(), BackupError> {
    let path = target.folder();
    let (free, _) = space(path).map_err(BackupError::io(path))?;
    let needed = Bytes(manifest.bytes().saturating_add(RESERVE));
    match free < needed {
        true => Err(BackupError::NoRoom { path: path.to_owned(), free, needed }),
        false => Ok(()),
    }
}

fn read_manifest<R: Read>(file: &Path, entries: &mut Entries<'_, R>) -> Result<BackupManifest, BackupError> {
    let refused = |what: String| BackupError::Refused { file: file.to_owned(), what };
    let first = match entries.next() {
        Some(Ok(entry)) => entry,
        Some(Err(error)) => return Err(refused(format!("it is no backup of a head ({error})"))),
        None => return Err(refused("it is empty".to_owned())),
    };
    if first.path_bytes() != MANIFEST.as_bytes() || first.header().entry_type() != EntryType::Regular {
        return Err(refused(format!("it is no backup of a head: its first entry is not {MANIFEST}")));
    }
    let size = first.size();
    if size > LARGEST_MANIFEST {
        return Err(refused(format!(
            "its {MANIFEST} has {size} bytes, and at most {LARGEST_MANIFEST} are allowed"
        )));
    }
    let mut text = Vec::new();
    let read = first.take(LARGEST_MANIFEST).read_to_end(&mut text);
    if let Some(error) = read.err() {
        return Err(refused(format!("its {MANIFEST} cannot be read: {error}")));
    }
    let damaged = |error: serde_json::Error| refused(format!("its {MANIFEST} is damaged: {error}"));
    let ManifestHeader { format, release } = serde_json::from_slice(&text).map_err(damaged)?;
    match format {
        FORMAT => serde_json::from_slice(&text).map_err(damaged),
        0 => Err(refused(format!("its {MANIFEST} has format 0, which does not exist"))),
        found => {
            let release = release.chars().filter(|c| c.is_ascii_graphic()).take(40).collect();
            Err(BackupError::Newer { file: file.to_owned(), found, known: FORMAT, release })
        }
    }
}

/// Why the entries of a backup cannot be unpacked.
enum UnpackError {
    /// What is wrong with the archive.
    Archive(String),
    Disk {
        path: PathBuf,
        source: io::Error,
    },
}

/// Unpacks the files of the manifest, and no others.
fn unpack<R: Read>(
    entries: &mut Entries<'_, R>,
    manifest: &BackupManifest,
    folder: &Path,
) -> Result<(), UnpackError> {
    for expected in &manifest.files {
        let entry = match entries.next() {
            Some(Ok(entry)) => entry,
            Some(Err(error)) => {
                return Err(UnpackError::Archive(format!(
                    "it is damaged before {:?}: {error}",
                    expected.path
                )));
            }
            None => return Err(UnpackError::Archive(format!("it ends before {:?}", expected.path))),
        };
        let (path, kind) = (entry.path_bytes(), entry.header().entry_type());
        if path != expected.path.as_bytes() || kind != EntryType::Regular {
            let found = String::from_utf8_lossy(&path).chars().take(200).collect::<String>();
            let what = format!("the entry {found:?} is where the file {:?} should be", expected.path);
            return Err(UnpackError::Archive(what));
        }
        if entry.size() != expected.size {
            let what = format!("{:?} has {} bytes instead of {}", expected.path, entry.size(), expected.size);
            return Err(UnpackError::Archive(what));
        }
        unpack_file(entry, expected, folder)?;
    }
    match entries.next() {
        None => Ok(()),
        Some(_) => Err(UnpackError::Archive("it has more entries than its manifest names".to_owned())),
    }
}

fn unpack_file(content: impl Read, expected: &ManifestEntry, folder: &Path) -> Result<(), UnpackError> {
    let path = folder.join(&expected.path);
    let disk = |source| UnpackError::Disk { path: path.clone(), source };
    for above in folders_above(&expected.path) {
        match DirBuilder::new().mode(0o700).create(folder.join(above)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(disk(error)),
            Ok(()) | Err(_) => {}
        }
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(disk)?;
    let (mut reader, mut chunk) = (HashingReader::new(content), vec![0; CHUNK]);
    loop {
        let unreadable = |error| UnpackError::Archive(format!("{:?} cannot be read: {error}", expected.path));
        match reader.read(&mut chunk).map_err(unreadable)? {
            0 => break,
            read => file.write_all(&chunk[..read]).map_err(disk)?,
        }
    }
    match reader.finish() {
        (size, _) if size < expected.size => {
            Err(UnpackError::Archive(format!("it ends within {:?}", expected.path)))
        }
        (_, hash) if hash != expected.sha256 => {
            Err(UnpackError::Archive(format!("{:?} is damaged: its SHA-256 differs", expected.path)))
        }
        _ => Ok(()),
    }
}

/// What is wrong with the journal of the backup, if that is the error. Its file is gone when somebody reads
/// this.
fn journal_damage(error: &BackupError) -> Option<String> {
    let BackupError::Head(error) = error else { return None };
    if let HeadError::Corrupt { what, .. } | HeadError::CannotContinue { what, .. } = error {
        return Some(format!("its journal is damaged: {what}"));
    }
    if let HeadError::CannotReplay { event, why, .. } = error {
        return Some(format!("event {event} of its journal {why}"));
    }
    if let HeadError::Newer { found, known, .. } = error {
        return Some(format!(
            "its journal has format {found}, and this version of Cohabit reads formats up to {known}: use the release that \
             made the backup"
        ));
    }
    None
}

/// Where the numbers of jobs go on.
struct ContinuedNumbers {
    jobs: u64,
    last_job: u64,
    next_job: u64,
}

/// Replays the journal as the start of a head does, which also upgrades an older one, and lets numbers jump.
fn continue_journal(folder: &Path, manifest: &BackupManifest) -> Result<ContinuedNumbers, BackupError> {
    let state = StateDir::open(folder)?;
    let path = state.journal();
    let mut journal = SqliteJournal::open(&path)?;
    let recovered = recover_and_upgrade(&path, &mut journal)?;
    let cluster = journal.cluster_id()?;
    if cluster != manifest.cluster {
        let what = format!("it is of the cluster {cluster}, and the backup of {}", manifest.cluster);
        return Err(HeadError::Corrupt { path, what }.into());
    }
    let (now, last) = (wall_clock(), recovered.last);
    if now + CLOCK_SLACK < last {
        return Err(BackupError::Clock { behind: last.since(now) });
    }
    let gap = NumberGap::after(now.since(last));
    let last_job = recovered.head.last_number();
    let continued = gap.last_job(last_job);
    let event = Event::BackupRestored { last_number: continued, attempt_gap: gap.attempts };
    let entry = JournalEntry { at: now.max(last), event };
    journal.commit(&[JournalWrite::from(entry), JournalWrite::SkipFeedNumbers(gap.feed)])?;
    state.note_cluster(&cluster)?;
    drop(journal);
    let jobs = recovered.head.job_count() as u64;
    Ok(ContinuedNumbers { jobs, last_job, next_job: continued.saturating_add(1) })
}
