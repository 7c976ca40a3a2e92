//! A journal gives back everything in order, or refuses clearly and changes nothing.

use std::path::Path;
use std::sync::{Arc, Mutex};

use cohabit_journal::{FORMAT, encode_head, encode_part};
use cohabit_scheduler_core::{Event, Head};
use cohabit_types::{JobId, JobState, StopReason, Time};
use futures::executor::block_on;
use futures::future::join_all;

use super::store::JournalContents;
use super::{Commit, EncodedPart, Journal, JournalEntry, JournalWrite, JournalWriter, SqliteJournal};
use crate::HeadError;
use crate::recovery::{RecoveredHead, recover_and_upgrade};
use crate::sql::sqlite_error;
use crate::test_kit::{TestJournal, at, one_job, replayed, snapshot, submitted, writes};

/// A journal of each format.
const FIXTURES: [&str; 6] = [
    include_str!("../../tests/fixtures/journal-1.sql"),
    include_str!("../../tests/fixtures/journal-2.sql"),
    include_str!("../../tests/fixtures/journal-3.sql"),
    include_str!("../../tests/fixtures/journal-4.sql"),
    include_str!("../../tests/fixtures/journal-5.sql"),
    include_str!("../../tests/fixtures/journal-6.sql"),
];

fn recovered(journal: &TestJournal) -> Result<RecoveredHead, HeadError> {
    let mut open = SqliteJournal::open(&journal.path)?;
    recover_and_upgrade(&journal.path, &mut open)
}

fn refusal(journal: &TestJournal) -> String {
    let before = std::fs::read(&journal.path).unwrap();
    let refusal = recovered(journal).map(drop).unwrap_err().to_string();
    assert_eq!(std::fs::read(&journal.path).unwrap(), before, "a refused journal is left as it is");
    assert!(refusal.contains("journal.sqlite"), "{refusal}");
    refusal
}

/// Everything that a snapshot of the head holds.
fn json(head: &Head) -> String {
    let (rest, parts) = head.split_for_snapshot(usize::MAX);
    let parts = parts.map(|part| encode_part(&part).unwrap());
    let texts = std::iter::once(encode_head(&rest).unwrap()).chain(parts);
    let texts: Vec<String> = texts.map(|text| String::from_utf8(text).unwrap()).collect();
    format!("[{}]", texts.join(","))
}

#[test]
fn a_new_journal_is_empty_and_keeps_its_cluster_id() {
    let journal = TestJournal::new();
    let first = journal.open();
    assert_eq!(first.load().unwrap(), JournalContents { snapshot: None, tail: vec![] });
    let cluster = first.cluster_id().unwrap();
    drop(first);
    assert_eq!(journal.open().cluster_id().unwrap(), cluster);
}

#[test]
fn committed_events_are_read_back_in_order() {
    let journal = TestJournal::of(one_job());
    let loaded = journal.open().load().unwrap();
    let numbered = |(n, event)| (n + 1, JournalEntry { at: at(n), event });
    assert_eq!(loaded.tail, (0..).zip(one_job()).map(numbered).collect::<Vec<_>>());
}

#[test]
fn a_recovered_head_equals_the_original() {
    let recovered = recovered(&TestJournal::of(one_job())).unwrap();
    assert_eq!(json(&recovered.head), json(&replayed(one_job())));
    assert_eq!(recovered.last, at(6));
    assert_eq!(recovered.ended.len(), 1);
    assert_eq!(recovered.ended[0].state, JobState::Completed);
    assert_eq!(recovered.head.live_jobs().collect::<Vec<_>>(), [JobId::new(2)]);
}

#[test]
fn a_snapshot_and_its_tail_give_the_same_head() {
    let journal = TestJournal::new();
    let (early, late) = (one_job()[..4].to_vec(), one_job()[4..].to_vec());
    let mut open = journal.open();
    open.commit(&writes(early.clone())).unwrap();
    open.commit(&snapshot(4, &replayed(early))).unwrap();
    let tail = (4..).zip(late).map(|(secs, event)| JournalWrite::from(JournalEntry { at: at(secs), event }));
    open.commit(&tail.collect::<Vec<_>>()).unwrap();
    drop(open);
    let recovered = recovered(&journal).unwrap();
    assert_eq!(recovered.replayed, 3);
    assert_eq!(json(&recovered.head), json(&replayed(one_job())));
}

#[test]
fn events_before_the_last_snapshot_but_one_are_dropped() {
    let journal = TestJournal::new();
    let mut open = journal.open();
    for secs in 0..3 {
        open.commit(&[JournalWrite::from(JournalEntry { at: at(secs), event: Event::Alarm })]).unwrap();
        open.commit(&snapshot(secs + 1, &Head::new())).unwrap();
    }
    drop(open);
    let column = |sql| journal.ask(sql)[0].clone().unwrap();
    assert_eq!(column("SELECT group_concat(sequence) FROM events"), "3");
    assert_eq!(column("SELECT group_concat(sequence) FROM snapshots"), "2,3");
    let mut open = journal.open();
    open.commit(&[JournalWrite::from(JournalEntry { at: at(9), event: Event::Alarm })]).unwrap();
    assert_eq!(open.load().unwrap().tail, [(4, JournalEntry { at: at(9), event: Event::Alarm })]);
}

#[test]
fn redundant_rows_are_removed_a_few_with_each_commit() {
    let journal = TestJournal::new();
    let mut open = journal.open();
    let alarm = || JournalWrite::from(JournalEntry { at: at(9_000), event: Event::Alarm });
    open.commit(&std::iter::repeat_with(alarm).take(3_000).collect::<Vec<_>>()).unwrap();
    for sequence in [3_000, 3_001] {
        open.commit(&snapshot(sequence, &Head::new())).unwrap();
        open.commit(&[alarm()]).unwrap();
    }
    let events = || journal.ask("SELECT count(*) FROM events")[0].clone().unwrap().parse::<u64>().unwrap();
    let mut left = events();
    assert!(left > 2, "none goes for long: {left}");
    while left > 2 {
        open.commit(&[]).unwrap();
        assert!((left - 1_024.min(left)..left).contains(&events()), "{left} and then {}", events());
        left = events();
    }
    assert_eq!(open.load().unwrap().tail.len(), 1);
}

/// The head crashed between its parts.
#[test]
fn an_unfinished_snapshot_is_ignored_and_removed() {
    let journal = TestJournal::of(one_job());
    let mut unfinished = snapshot(7, &replayed(one_job()));
    unfinished.pop();
    let mut open = journal.open();
    open.commit(&snapshot(4, &replayed(one_job()[..4].to_vec()))).unwrap();
    open.commit(&unfinished).unwrap();
    open.commit(&[]).unwrap();
    let parts = || journal.ask("SELECT group_concat(DISTINCT snapshot) FROM parts")[0].clone().unwrap();
    assert_eq!(parts(), "4,7", "the head may still finish it");
    drop(open);
    let recovered = recovered(&journal).unwrap();
    assert_eq!((recovered.replayed, json(&recovered.head)), (3, json(&replayed(one_job()))));
    journal.open().commit(&[]).unwrap();
    assert_eq!(parts(), "4");
}

#[test]
fn a_missing_event_is_named() {
    let journal = TestJournal::of(one_job());
    journal.edit("DELETE FROM events WHERE sequence = 3");
    assert!(refusal(&journal).contains("event 3 is missing"));
    journal.edit("DELETE FROM events WHERE sequence < 6");
    assert!(refusal(&journal).contains("event 1 is missing"));
}

#[test]
fn an_event_that_cannot_be_read_is_named() {
    let journal = TestJournal::of(one_job());
    journal.edit("UPDATE events SET event = '{\"worker_joined\":' WHERE sequence = 2");
    let named = refusal(&journal);
    assert!(named.starts_with("event 2 of the journal") && named.contains("cannot be read"), "{named}");
    let behind = "Behind it, 5 readable events (3 to 7), 2 of them submissions of jobs, and 0 damaged ones";
    assert!(named.contains(behind) && named.contains("recover --quarantine 2"), "{named}");
    journal.edit("UPDATE events SET event = CAST(x'7b22ff' AS TEXT) WHERE sequence = 2");
    assert!(refusal(&journal).contains("it is no UTF-8 text"));
}

#[test]
fn an_event_older_than_its_predecessor_is_named() {
    let journal = TestJournal::of(one_job());
    journal.edit("UPDATE events SET at = 5 WHERE sequence = 4");
    assert!(refusal(&journal).contains("event 4 is older"));
}

#[test]
fn a_snapshot_that_cannot_be_read_is_named() {
    let journal = TestJournal::of(one_job());
    let content = EncodedPart::Plain("{}".into());
    let part = JournalWrite::Part { snapshot: 7, number: 0, content };
    journal.open().commit(&[part, JournalWrite::Snapshot { sequence: 7, at: at(6), parts: 1 }]).unwrap();
    assert!(refusal(&journal).contains("the snapshot after event 7 cannot be read"));
}

#[test]
fn a_part_that_is_missing_or_damaged_is_named() {
    let journal = TestJournal::of(one_job());
    journal.open().commit(&snapshot(7, &replayed(one_job()))).unwrap();
    // LZ4 that says how long it is, and ends there.
    journal.edit("UPDATE parts SET content = x'ffffff7f00' WHERE number = 2");
    assert!(refusal(&journal).contains("the snapshot after event 7 cannot be read: it is shorter than"));
    journal.edit("DELETE FROM parts WHERE number = 1");
    assert!(refusal(&journal).contains("the snapshot after event 7 has 2 of its 3 parts"));
}

#[test]
fn a_newer_format_is_left_alone() {
    let journal = TestJournal::of(one_job());
    journal.edit("PRAGMA user_version = 99");
    let known = format!(
        "has format 99, and this version of Cohabit reads formats up to {FORMAT}. Nothing was overwritten: start \
         the newer version"
    );
    let path = journal.path.display();
    assert_eq!(refusal(&journal), format!("the journal {path} {known}"));
    journal
        .edit(&format!("PRAGMA user_version = {FORMAT}; UPDATE events SET format = 99 WHERE sequence = 3"));
    assert_eq!(refusal(&journal), format!("event 3 of the journal {path} {known}"));
}

#[test]
fn a_newer_part_of_a_snapshot_is_left_alone() {
    let journal = TestJournal::of(one_job());
    journal.open().commit(&snapshot(7, &replayed(one_job()))).unwrap();
    journal.edit("UPDATE snapshots SET format = 99");
    let path = journal.path.display();
    let expected = format!("part 0 of the snapshot after event 7 of the journal {path} has format 99");
    let refusal = refusal(&journal);
    assert!(refusal.starts_with(&expected), "{refusal}");
}

/// A submission that counts jobs which it does not have.
#[test]
fn a_journal_of_an_older_format_that_leads_to_a_broken_state_is_not_upgraded() {
    let journal = TestJournal::new();
    journal.edit(FIXTURES[4]);
    let connection = rusqlite::Connection::open(&journal.path).unwrap();
    let newest = "FROM parts WHERE number = 1";
    let content: EncodedPart =
        connection.query_row(&format!("SELECT content {newest}"), [], |row| row.get(0)).unwrap();
    let text = String::from_utf8_lossy(&content.text().unwrap()).into_owned();
    let broken = text.replace(r#""states":{"PENDING":1}"#, r#""states":{"PENDING":7}"#);
    assert_ne!(broken, text);
    let broken = EncodedPart::of(broken.as_bytes());
    connection.execute("UPDATE parts SET content = ?1 WHERE number = 1", [broken]).unwrap();
    drop(connection);
    let format = journal.ask("PRAGMA user_version");
    let refusal = refusal(&journal);
    for part in ["cannot continue from the journal", "submission 1 are", "start the version that wrote"] {
        assert!(refusal.contains(part), "{refusal}");
    }
    assert_eq!(journal.ask("PRAGMA user_version"), format);
}

/// The release that wrote it can still be started, as docs/OPERATIONS.md promises.
#[test]
fn a_journal_of_an_older_format_that_cannot_be_read_is_not_upgraded() {
    for fixture in &FIXTURES[..5] {
        let journal = TestJournal::new();
        journal.edit(fixture);
        journal.edit("UPDATE events SET event = '{}' WHERE sequence = (SELECT max(sequence) FROM events)");
        let format = journal.ask("PRAGMA user_version");
        assert!(refusal(&journal).contains("cannot be read"));
        assert_eq!(journal.ask("PRAGMA user_version"), format);
    }
}

#[test]
fn reasons_of_stops_become_words_when_a_journal_is_upgraded() {
    let journal = TestJournal::new();
    journal.edit(FIXTURES[4]);
    let old = "Cancelled TimeLimit Requeued GangBroken Preempted Superseded Orphaned MpsFault MpsFaultVictim \
               GpuMemory DeviceLost Unenforced";
    journal.edit(
        "INSERT INTO jobs SELECT '1', 1, NULL, NULL, '', '', NULL, '', '', NULL, NULL, '', NULL, NULL, 0, \
                  NULL, 0, NULL, 0, 0, '', '', '', ''",
    );
    for (number, word) in old.split_whitespace().enumerate() {
        let values = format!("'1', {number}, '', NULL, 0, NULL, NULL, '{word}', 0, '', ''");
        journal.edit(&format!("INSERT INTO attempts VALUES ({values})"));
    }
    recovered(&journal).unwrap();
    let words =
        journal.ask("SELECT group_concat(stopped) FROM (SELECT stopped FROM attempts ORDER BY attempt)");
    let younger = [
        StopReason::Killed,
        StopReason::ApplicationEnded,
        StopReason::Stalled,
        StopReason::Reclaimed,
        StopReason::Idle,
    ];
    let known = StopReason::ALL.into_iter().filter(|reason| !younger.contains(reason));
    let known: Vec<&str> = known.map(StopReason::as_str).collect();
    assert_eq!(words, [Some(known.join(","))]);
}

#[test]
fn damage_inside_the_file_is_found() {
    let journal = TestJournal::of(one_job());
    journal.edit("PRAGMA wal_checkpoint(TRUNCATE)");
    let mut bytes = std::fs::read(&journal.path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 6_000].fill(0xa5);
    std::fs::write(&journal.path, bytes).unwrap();
    assert!(refusal(&journal).contains("is damaged"));
}

#[test]
fn a_file_that_is_no_journal_is_left_alone() {
    let journal = TestJournal::new();
    std::fs::write(&journal.path, "these are my notes, and no database at all".repeat(100)).unwrap();
    assert!(refusal(&journal).contains("is damaged"));
    std::fs::remove_file(&journal.path).unwrap();
    journal.edit("CREATE TABLE songs (title TEXT)");
    assert!(refusal(&journal).contains("not a journal of Cohabit"));
}

#[test]
fn a_failed_commit_leaves_nothing_behind() {
    let journal = TestJournal::of(one_job());
    let mut open = journal.open();
    journal.edit("CREATE TRIGGER full BEFORE INSERT ON snapshots BEGIN SELECT raise(FAIL, 'no space'); END");
    let event = JournalWrite::from(JournalEntry { at: at(8), event: Event::Alarm });
    let snapshot = JournalWrite::Snapshot { sequence: 8, at: at(8), parts: 0 };
    assert!(open.commit(&[event.clone(), snapshot]).is_err());
    open.commit(&[event]).unwrap();
    assert_eq!(open.load().unwrap().tail.len(), 8);
}

/// In each, one job ended, one runs and one waits.
#[test]
fn the_journal_of_every_format_loads() {
    for fixture in FIXTURES {
        let journal = TestJournal::new();
        journal.edit(fixture);
        let recovered = recovered(&journal).unwrap();
        recovered.head.check().unwrap();
        let record = |number| recovered.head.at(recovered.last).record(JobId::new(number)).unwrap();
        let states: Vec<_> = (1..=5).map(|number| record(number).state).collect();
        use JobState::{Cancelled, Completed, Pending, Running};
        assert_eq!(states, [Completed, Running, Pending, Running, Cancelled]);
        assert_eq!(record(1).attempts.len(), 2);
        assert_eq!(record(4).array.unwrap().members, 3);
        for table in ["stretches", "misfits"] {
            let rows = journal.ask(&format!("SELECT count(*) FROM {table}"));
            assert_eq!(rows, [Some("0".into())], "it has all tables");
        }
    }
}

/// The same journals without their snapshots: replay starts with the first event.
#[test]
fn every_event_of_every_format_is_replayed() {
    for fixture in FIXTURES {
        let journal = TestJournal::new();
        journal.edit(fixture);
        // Snapshots of old formats lack roles, the start of the head and what users used; the events of the
        // same journal have them.
        let head = || {
            let text =
                json(&recovered(&journal).unwrap().head).replace(r#""role":"user""#, r#""role":"admin""#);
            let mut head: serde_json::Value = serde_json::from_str(&text).unwrap();
            head[0]["started_at"].take();
            head[0]["shares"].take();
            head
        };
        let by_snapshot = head();
        journal.edit("DELETE FROM snapshots");
        assert_eq!(head(), by_snapshot);
    }
}

/// Records how many writes each commit had.
#[derive(Clone, Default)]
struct Counting(Arc<Mutex<Vec<usize>>>, Arc<Mutex<()>>);

impl Journal for Counting {
    fn load(&self) -> Result<JournalContents, HeadError> {
        Ok(JournalContents { snapshot: None, tail: vec![] })
    }

    fn commit(&mut self, writes: &[JournalWrite]) -> Result<(), HeadError> {
        drop(self.1.lock().unwrap());
        self.0.lock().unwrap().push(writes.len());
        Ok(())
    }
}

#[test]
fn writes_that_queue_during_a_commit_share_the_next_one() {
    let (counting, event) =
        (Counting::default(), JournalWrite::from(JournalEntry { at: Time::EPOCH, event: submitted(1) }));
    let disk = counting.1.clone();
    let busy = disk.lock().unwrap();
    let writer = JournalWriter::start(counting.clone()).unwrap();
    let address = writer.address.clone();
    let ask = |_| {
        address.ask(|durable| Commit { history: vec![], writes: vec![event.clone()], durable: Some(durable) })
    };
    let mut asked: Vec<_> = (0..20).map(ask).map(Box::pin).collect();
    // All requests are in the mailbox while the first commit is under way.
    asked.iter_mut().for_each(|asked| assert!(futures::FutureExt::now_or_never(asked).is_none()));
    drop(busy);
    assert!(block_on(join_all(asked)).into_iter().all(|answer| answer.is_ok()));
    writer.close().unwrap();
    let commits = counting.0.lock().unwrap();
    assert_eq!(commits.iter().sum::<usize>(), 20);
    assert!(commits.len() <= 2, "one commit under way and one for all that waited: {commits:?}");
}

/// A disk that is full for a set number of commits. Keeps what was committed.
#[derive(Clone, Default)]
struct Filling {
    failures: Arc<Mutex<usize>>,
    committed: Arc<Mutex<Vec<JournalWrite>>>,
}

impl Journal for Filling {
    fn load(&self) -> Result<JournalContents, HeadError> {
        Ok(JournalContents { snapshot: None, tail: vec![] })
    }

    fn commit(&mut self, writes: &[JournalWrite]) -> Result<(), HeadError> {
        let mut failures = self.failures.lock().unwrap();
        if *failures > 0 {
            *failures -= 1;
            let full = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL);
            let source = rusqlite::Error::SqliteFailure(full, None);
            return Err(sqlite_error(Path::new("journal.sqlite"))(source));
        }
        self.committed.lock().unwrap().extend(writes.iter().cloned());
        Ok(())
    }
}

#[test]
fn writes_without_a_waiter_survive_a_full_disk_and_stay_first() {
    let filling = Filling::default();
    let writer = JournalWriter::start(filling.clone()).unwrap();
    let event = JournalWrite::from(JournalEntry { at: Time::EPOCH, event: submitted(1) });
    let prune = |secs| JournalWrite::Prune { history: at(secs), archive: at(secs), feed: at(secs) };
    let ask = || {
        writer.address.ask(|durable| Commit {
            history: vec![],
            writes: vec![event.clone()],
            durable: Some(durable),
        })
    };
    *filling.failures.lock().unwrap() = 2;
    for secs in [1, 2] {
        let history = Commit { history: vec![prune(secs)], writes: vec![], durable: None };
        block_on(writer.address.tell(history)).unwrap();
    }
    // The history may or may not have had a commit of its own, so one or two of the requests fail.
    let refused = (0..2).filter(|_| block_on(ask()).unwrap().is_err()).count();
    assert_eq!(block_on(ask()), Ok(Ok(())));
    writer.close().unwrap();
    let expected = std::iter::repeat_n(event, 3 - refused);
    let committed = filling.committed.lock().unwrap();
    assert_eq!(*committed, [prune(1), prune(2)].into_iter().chain(expected).collect::<Vec<_>>());
}

#[test]
fn after_a_failed_commit_nothing_is_acknowledged() {
    struct Full;
    impl Journal for Full {
        fn load(&self) -> Result<JournalContents, HeadError> {
            Ok(JournalContents { snapshot: None, tail: vec![] })
        }
        fn commit(&mut self, _: &[JournalWrite]) -> Result<(), HeadError> {
            Err(HeadError::Failed("no space left".into()))
        }
    }
    let writer = JournalWriter::start(Full).unwrap();
    let asked =
        writer.address.ask(|durable| Commit { history: vec![], writes: vec![], durable: Some(durable) });
    assert!(block_on(asked).is_err());
    assert!(matches!(writer.close(), Err(HeadError::Failed(_))));
}
