//! Backups are complete and restored whole, or refused with a sentence and without a trace.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use cohabit_scheduler_core::{Event, Head};
use cohabit_store::hash_of;
use cohabit_types::Time;
use nix::unistd::geteuid;
use serde_json::{Value, json};
use tar::{Archive, Builder, EntryType, Header};
use tempfile::TempDir;

use super::contents::is_saved;
use super::{BackupError, BackupSummary, ExistingFile, RestoreSummary, back_up, restore_backup};
use crate::HeadError;
use crate::journal::{Journal, JournalEntry, JournalWrite, SqliteJournal};
use crate::recovery::{RecoveredHead, recover};
use crate::state_dir::StateDir;
use crate::test_kit::cluster::TestHead;
use crate::test_kit::{at, one_job, submitted};

/// A folder with a state directory in it.
struct TestState {
    folder: TempDir,
}

impl TestState {
    /// With a journal of these events, keys and tokens that nobody looks into, and code of one user.
    fn of(events: Vec<Event>) -> TestState {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let user = format!("code/{}", hash_of(b"ada"));
        for inside in ["tls", "interference/3", &format!("{user}/ab"), &format!("{user}/partial")] {
            fs::create_dir_all(state.join(inside)).unwrap();
        }
        fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).unwrap();
        let content = format!("{user}/ab/{}", "c".repeat(62));
        let files = [
            "tls/ca.pem",
            "tls/ca.key",
            "tokens.json",
            "interference/current",
            "interference/3/version.json",
            &format!("{user}/user"),
            &content,
            "application-key",
            // None of these is a part of a backup.
            &format!("{user}/partial/{}", "d".repeat(64)),
            "address",
            "replaying.json",
            "journal.sqlite-wal.damaged",
        ];
        for path in files {
            fs::write(state.join(path), format!("the content of {path}")).unwrap();
        }
        let entries = (0..).zip(events).map(|(secs, event)| JournalEntry { at: at(secs), event });
        let writes: Vec<JournalWrite> = entries.map(JournalWrite::from).collect();
        SqliteJournal::open(&state.join("journal.sqlite")).unwrap().commit(&writes).unwrap();
        TestState { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn back_up(&self) -> Result<BackupSummary, BackupError> {
        back_up(&self.path("state"), &self.path("backup.tar"), ExistingFile::Keep)
    }

    fn restore(&self) -> Result<RestoreSummary, BackupError> {
        restore_backup(&self.path("backup.tar"), &self.path("new"))
    }

    fn names(&self) -> Vec<String> {
        names_in(self.folder.path())
    }
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn recovered(state: &Path) -> RecoveredHead {
    let path = state.join("journal.sqlite");
    recover(&path, &SqliteJournal::open(&path).unwrap(), |_| ()).unwrap()
}

/// The entries of a backup.
#[derive(Clone)]
struct TestEntry {
    path: String,
    kind: EntryType,
    content: Vec<u8>,
}

fn entries_of(file: &Path) -> Vec<TestEntry> {
    let mut archive = Archive::new(File::open(file).unwrap());
    let read = |entry: std::io::Result<tar::Entry<'_, File>>| {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().display().to_string();
        let (kind, mut content) = (entry.header().entry_type(), Vec::new());
        entry.read_to_end(&mut content).unwrap();
        TestEntry { path, kind, content }
    };
    archive.entries().unwrap().map(read).collect()
}

/// Writes whatever these say, also what no honest program writes.
fn write(file: &Path, entries: &[TestEntry]) {
    let mut archive = Builder::new(File::create(file).unwrap());
    for TestEntry { path, kind, content } in entries {
        let mut header = Header::new_ustar();
        let (folders, name) = path.rsplit_once('/').filter(|_| path.len() > 100).unwrap_or(("", path));
        let ustar = header.as_ustar_mut().unwrap();
        ustar.name[..name.len()].copy_from_slice(name.as_bytes());
        ustar.prefix[..folders.len()].copy_from_slice(folders.as_bytes());
        header.set_entry_type(*kind);
        header.set_size(content.len() as u64);
        header.set_cksum();
        archive.append(&header, content.as_slice()).unwrap();
    }
    archive.finish().unwrap();
}

fn change_manifest(entries: &mut [TestEntry], change: impl FnOnce(&mut Value)) {
    let mut manifest: Value = serde_json::from_slice(&entries[0].content).unwrap();
    change(&mut manifest);
    entries[0].content = manifest.to_string().into_bytes();
}

#[test]
fn a_restored_head_is_the_same_but_for_its_numbers() {
    for count in 1..=one_job().len() {
        let events: Vec<Event> = one_job().into_iter().take(count).collect();
        let test = TestState::of(events);
        let before = recovered(&test.path("state"));
        let made = test.back_up().unwrap();
        assert_eq!((made.last_job, made.jobs), (before.head.last_number(), before.head.job_count() as u64));
        let restored = test.restore().unwrap();
        let after = recovered(&test.path("new"));
        assert_eq!((after.sequence, restored.last_job), (before.sequence + 1, made.last_job));
        let mut expected: Head = before.head;
        let gap = after.head.last_number() - restored.last_job;
        assert!(gap >= 1_000_000 && restored.next_job == after.head.last_number() + 1, "{restored:?}");
        let attempt_gap = u32::try_from(gap / 1_000).unwrap();
        let event = Event::BackupRestored { last_number: after.head.last_number(), attempt_gap };
        expected.handle(after.last, event, &mut Vec::new());
        // The gap of attempts follows from the time of the restore.
        let shown = |head: &Head| format!("{:?}", head.split_for_snapshot(usize::MAX));
        let rest = |head: &Head| {
            let text = shown(head);
            let (before, after) = text.split_once("attempt_gap: ").unwrap();
            format!("{before}{}", after.trim_start_matches(|c: char| c.is_ascii_digit()))
        };
        assert_eq!(rest(&after.head), rest(&expected));
    }
}

#[test]
fn a_backup_has_what_a_head_needs_and_nothing_else() {
    let test = TestState::of(one_job());
    let made = test.back_up().unwrap();
    let file = test.path("backup.tar");
    assert_eq!(
        (fs::metadata(&file).unwrap().mode() & 0o777, made.bytes.0),
        (0o600, file.metadata().unwrap().len())
    );
    assert_eq!(test.names(), ["backup.tar", "state"], "nothing else is left");
    let user = format!("code/{}", hash_of(b"ada"));
    let paths: Vec<String> = entries_of(&file).into_iter().map(|it| it.path).collect();
    let expected = [
        "manifest.json",
        "journal.sqlite",
        "tls/ca.pem",
        "tls/ca.key",
        "tokens.json",
        "application-key",
        &format!("{user}/ab/{}", "c".repeat(62)),
        &format!("{user}/user"),
        "interference/3/version.json",
        "interference/current",
    ];
    assert_eq!(paths, expected);
    assert_eq!(made.files, 9);
    let restored = test.restore().unwrap();
    for path in &expected[2..] {
        let new = test.path("new").join(path);
        assert_eq!(fs::read(&new).unwrap(), fs::read(test.path("state").join(path)).unwrap(), "{path}");
        assert_eq!(fs::metadata(&new).unwrap().mode() & 0o777, 0o600, "{path}");
    }
    assert_eq!(fs::metadata(test.path("new")).unwrap().mode() & 0o777, 0o700);
    let noted = fs::read_to_string(test.path("new/cluster")).unwrap();
    assert_eq!((noted.trim(), &made.cluster), (restored.cluster.as_str(), &restored.cluster));
}

/// A file that a head comes to keep has to be decided on here.
#[tokio::test]
async fn every_file_of_a_head_is_saved_or_belongs_to_a_running_process() {
    let head = TestHead::start().await;
    head.admin().await.submit().await;
    let names: BTreeSet<String> = names_in(head.folder.path()).into_iter().collect();
    let of_process = ["address", "journal.sqlite-shm", "journal.sqlite-wal", "lock"];
    let folders = ["tls"];
    let undecided: Vec<&String> = names
        .iter()
        .filter(|name| {
            !is_saved(name) && !of_process.contains(&name.as_str()) && !folders.contains(&name.as_str())
        })
        .collect();
    assert!(undecided.is_empty(), "{undecided:?}");
    assert!(names_in(&head.folder.path().join("tls")).iter().all(|name| is_saved(&format!("tls/{name}"))));
}

#[tokio::test]
async fn a_backup_beside_submissions_has_every_job_that_was_accepted_before_it() {
    let head = TestHead::start_like(|options| options.snapshot_every = 5).await;
    let client = head.admin().await;
    let folder = tempfile::tempdir().unwrap();
    let (mut accepted, mut backups) = (Vec::new(), Vec::new());
    for round in 0..4 {
        accepted.push(client.submit().await);
        let (state, file) = (head.folder.path().to_owned(), folder.path().join(format!("{round}.tar")));
        let made = tokio::task::spawn_blocking(move || back_up(&state, &file, ExistingFile::Keep));
        let more = futures::future::join_all((0..10).map(|_| client.submit())).await;
        backups.push((accepted.len() as u64, made.await.unwrap().unwrap()));
        accepted.extend(more);
    }
    for (before, made) in backups {
        let new = folder.path().join(format!("new-{before}"));
        let restored = restore_backup(&made.file, &new).unwrap();
        assert!(made.last_job >= before && restored.last_job == made.last_job, "{made:?}");
        let known = recovered(&new).head;
        assert_eq!(known.job_count() as u64, made.last_job, "every number up to the last one");
    }
}

#[tokio::test]
async fn a_head_that_runs_keeps_its_directory_and_tokens_of_the_backup_are_good() {
    let head = TestHead::start().await;
    let job = head.admin().await.submit().await;
    let folder = tempfile::tempdir().unwrap();
    let (state, file) = (head.folder.path().to_owned(), folder.path().join("backup.tar"));
    let refused = {
        let (state, file) = (state.clone(), file.clone());
        tokio::task::spawn_blocking(move || {
            back_up(&state, &file, ExistingFile::Keep).unwrap();
            restore_backup(&file, &state).unwrap_err()
        })
    };
    assert!(matches!(refused.await.unwrap(), BackupError::Head(HeadError::InUse { .. })));
    let stopped = head.killed();
    fs::remove_dir_all(&state).unwrap();
    fs::create_dir(&state).unwrap();
    // An empty directory is filled where it is, and keeps its mode.
    fs::set_permissions(&state, fs::Permissions::from_mode(0o711)).unwrap();
    let restored = tokio::task::spawn_blocking(move || restore_backup(&file, &state).unwrap()).await.unwrap();
    assert_eq!(fs::metadata(stopped.folder.path()).unwrap().mode() & 0o777, 0o711);
    let head = stopped.started().await;
    let client = head.admin().await;
    assert_eq!(client.show(job).await.id, job);
    assert_eq!(client.submit().await.number, restored.next_job);
}

#[test]
fn a_journal_of_an_earlier_format_is_saved_as_it_is_and_upgraded_by_the_restore() {
    let test = TestState::of(Vec::new());
    let journal = test.path("state/journal.sqlite");
    fs::remove_file(&journal).unwrap();
    let old = rusqlite::Connection::open(&journal).unwrap();
    old.execute_batch(include_str!("../../tests/fixtures/journal-5.sql")).unwrap();
    drop(old);
    let format = |path: &Path| -> u32 {
        let journal = rusqlite::Connection::open(path).unwrap();
        journal.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    };
    let made = test.back_up().unwrap();
    assert_eq!(format(&journal), 5, "a backup changes nothing");
    let manifest: Value = serde_json::from_slice(&entries_of(&made.file)[0].content).unwrap();
    assert_eq!(manifest["journal_format"], 5);
    test.restore().unwrap();
    assert_eq!(format(&test.path("new/journal.sqlite")), cohabit_journal::FORMAT);
    assert!(recovered(&test.path("new")).head.last_number() > 1_000_000);
}

/// Needs the right to give files away, which accounts other than root lack.
#[test]
fn another_account_is_told_which_one_may_make_a_backup() {
    let test = TestState::of(one_job());
    if !geteuid().is_root() {
        return;
    }
    std::os::unix::fs::chown(test.path("state"), Some(4_711), None).unwrap();
    let refusal = test.back_up().unwrap_err();
    assert!(matches!(refusal, BackupError::OtherAccount { owner: 4_711, .. }), "{refusal}");
    assert!(refusal.to_string().contains("run this command as that account"), "{refusal}");
    assert_eq!(test.names(), ["state"]);
}

#[test]
fn a_backup_that_cannot_be_made_leaves_nothing() {
    let test = TestState::of(one_job());
    let file = test.path("backup.tar");
    let refusal = |state: &str, file: &Path| {
        back_up(&test.path(state), file, ExistingFile::Keep).unwrap_err().to_string()
    };
    assert!(refusal("nowhere", &file).contains("no journal of a head"));
    assert!(refusal("state", &test.path("state/backup.tar")).contains("inside the state directory"));
    assert!(refusal("state", &test.path("state/tls/backup.tar")).contains("inside the state directory"));
    assert!(refusal("state", &test.path("no/where.tar")).contains("cannot use"));
    assert!(refusal("state", &test.path("state/..")).contains("not the name of a file"));
    assert_eq!(test.names(), ["state"]);
    fs::write(&file, "an earlier one").unwrap();
    assert!(refusal("state", &file).contains("--force"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "an earlier one");
    back_up(&test.path("state"), &file, ExistingFile::Replace).unwrap();
    test.restore().unwrap();
    assert!(matches!(test.restore().unwrap_err(), BackupError::NotEmpty(_)));
}

/// What a backup is changed to, and what the refusal says.
type HostileChange = (&'static str, fn(&mut Vec<TestEntry>));

const HOSTILE: [HostileChange; 20] = [
    ("no time or no id", |entries| change_manifest(entries, |it| it["cluster"] = json!("\u{1b}[2J"))),
    ("its first entry is not manifest.json", |entries| drop(entries.remove(0))),
    ("its manifest.json is damaged", |entries| entries[0].content.truncate(40)),
    ("format 0", |entries| change_manifest(entries, |it| it["format"] = json!(0))),
    ("reads formats up to 1: restore it with release 9.0", |entries| {
        *entries = vec![entries[0].clone()];
        entries[0].content = br#"{"format": 2, "release": "9.0", "different": []}"#.to_vec();
    }),
    ("no part of a head's state", |entries| rename(entries, "/etc/passwd")),
    ("no part of a head's state", |entries| rename(entries, "../outside")),
    ("no part of a head's state", |entries| rename(entries, "tls/../../outside")),
    ("no part of a head's state", |entries| rename(entries, "lock")),
    ("no part of a head's state", |entries| rename(entries, "interference/.hidden")),
    ("\"tls/ca.key\" twice", |entries| rename(entries, "tls/ca.key")),
    ("lacks the file \"tokens.json\"", |entries| {
        entries.retain(|it| it.path != "tokens.json");
        change_manifest(entries, |it| {
            it["files"].as_array_mut().unwrap().retain(|it| it["path"] != "tokens.json")
        });
    }),
    ("the entry \"tls/ca.key\" is where the file \"tls/ca.pem\" should be", |entries| entries.swap(2, 3)),
    ("is where the file", |entries| entries.insert(3, entries[2].clone())),
    ("more entries than its manifest names", |entries| entries.push(entries[2].clone())),
    ("it ends before", |entries| drop(entries.pop())),
    ("is where the file \"tls/ca.pem\" should be", |entries| entries[2].kind = EntryType::Symlink),
    ("is where the file \"tls/ca.pem\" should be", |entries| entries[2].kind = EntryType::Link),
    ("its SHA-256 differs", |entries| entries[2].content[0] ^= 1),
    ("bytes instead of", |entries| entries[2].content.push(0)),
];

/// Gives the last file another path, in the manifest too.
fn rename(entries: &mut [TestEntry], path: &str) {
    if let Some(last) = entries.last_mut() {
        last.path = path.to_owned();
    }
    change_manifest(entries, |it| {
        if let Some(last) = it["files"].as_array_mut().and_then(|files| files.last_mut()) {
            last["path"] = json!(path);
        }
    });
}

#[test]
fn hostile_archives_are_refused_with_a_sentence_and_leave_nothing() {
    let test = TestState::of(one_job());
    let file = test.back_up().unwrap().file;
    let good = entries_of(&file);
    for (expected, change) in HOSTILE {
        let mut entries = good.clone();
        change(&mut entries);
        write(&file, &entries);
        let refusal = test.restore().unwrap_err().to_string();
        assert!(refusal.contains(expected) && refusal.contains("backup.tar"), "{expected}: {refusal}");
        assert_eq!(test.names(), ["backup.tar", "state"], "{expected}");
    }
    let mut entries = good.clone();
    change_manifest(&mut entries, |it| it["files"][0]["size"] = json!(u64::MAX));
    write(&file, &entries);
    assert!(test.restore().unwrap_err().to_string().contains("it is cut off"));
    write(&file, &good);
    test.restore().unwrap();
}

#[test]
fn a_backup_that_is_cut_off_anywhere_or_foreign_is_refused() {
    let test = TestState::of(one_job());
    let file = test.back_up().unwrap().file;
    let whole = fs::read(&file).unwrap();
    // The end mark of the archive does not count.
    let needed = whole.len() - 1_024;
    for length in (0..needed).step_by(needed / 61) {
        fs::write(&file, &whole[..length]).unwrap();
        let refusal = test.restore().unwrap_err();
        assert!(matches!(refusal, BackupError::Refused { .. }), "{length}: {refusal}");
    }
    for foreign in [&b"#!/bin/sh\n"[..], &[0; 4_096], &[0xff; 4_096], b"SQLite format 3\0"] {
        fs::write(&file, foreign).unwrap();
        assert!(matches!(test.restore().unwrap_err(), BackupError::Refused { .. }));
    }
    let folder = restore_backup(&test.path("state"), &test.path("new")).unwrap_err();
    assert!(folder.to_string().contains("it is no file"), "{folder}");
    assert_eq!(test.names(), ["backup.tar", "state"]);
}

#[test]
fn a_journal_that_is_damaged_or_of_another_cluster_is_refused() {
    let test = TestState::of(one_job());
    let file = test.back_up().unwrap().file;
    let good = entries_of(&file);
    let other = TestState::of(one_job());
    let other = entries_of(&other.back_up().unwrap().file);
    for (expected, journal) in
        [("is damaged", b"no database".to_vec()), ("of the cluster", other[1].content.clone())]
    {
        let mut entries = good.clone();
        entries[1].content = journal;
        let (size, hash) = (entries[1].content.len(), hash_of(&entries[1].content).to_string());
        change_manifest(&mut entries, |it| {
            it["files"][0]["size"] = json!(size);
            it["files"][0]["sha256"] = json!(hash);
        });
        write(&file, &entries);
        let refusal = test.restore().unwrap_err().to_string();
        assert!(refusal.contains(expected) && refusal.contains("backup.tar"), "{refusal}");
        assert_eq!(test.names(), ["backup.tar", "state"]);
    }
}

#[test]
fn a_backup_from_the_future_is_refused_until_the_clock_is_set() {
    let test = TestState::of(Vec::new());
    let event = JournalEntry { at: Time::from_micros(1 << 52), event: submitted(1) };
    let mut journal = SqliteJournal::open(&test.path("state/journal.sqlite")).unwrap();
    journal.commit(&[JournalWrite::from(event)]).unwrap();
    test.back_up().unwrap();
    assert!(matches!(test.restore().unwrap_err(), BackupError::Clock { .. }));
    assert_eq!(test.names(), ["backup.tar", "state"]);
}

#[test]
fn a_head_that_is_down_is_backed_up_and_its_directory_stays_free() {
    let test = TestState::of(one_job());
    let before = names_in(&test.path("state"));
    test.back_up().unwrap();
    let after = names_in(&test.path("state"));
    let new: Vec<_> = after.iter().filter(|name| !before.contains(*name)).collect();
    assert!(
        new.iter().all(|name| ["lock", "journal.sqlite-wal", "journal.sqlite-shm"].contains(&name.as_str()))
    );
    drop(StateDir::open(&test.path("state")).unwrap());
}
