//! A head that finds its state broken serves reads, refuses changes, and keeps its last good snapshot.

use std::sync::Arc;

use cohabit_journal::{FORMAT, decode_part, encode_part};
use cohabit_types::{JobState, RefusalCode};

use crate::journal::EncodedPart;
use crate::test_kit::cluster::{StoppedHead, TestHead};
use crate::test_kit::submit;

/// Makes the newest snapshot say that the first submission has no jobs.
fn break_snapshot(head: &StoppedHead) {
    let journal = rusqlite::Connection::open(head.folder.path().join("journal.sqlite")).unwrap();
    let newest = "SELECT max(snapshot) FROM parts";
    let snapshot: u64 = journal.query_row(newest, [], |row| row.get(0)).unwrap();
    let part = "SELECT content FROM parts WHERE snapshot = ?1 AND number = 1";
    let content: EncodedPart = journal.query_row(part, [snapshot], |row| row.get(0)).unwrap();
    let mut part = decode_part(FORMAT, &content.text().unwrap()).unwrap();
    Arc::make_mut(&mut part.submissions[0].1).state_counts.clear();
    let content = EncodedPart::of(&encode_part(&part).unwrap());
    let update = "UPDATE parts SET content = ?1 WHERE snapshot = ?2 AND number = 1";
    journal.execute(update, rusqlite::params![content, snapshot]).unwrap();
}

#[tokio::test]
async fn a_head_with_a_broken_state_serves_reads_and_keeps_its_last_snapshot() {
    let head = TestHead::start_like(|options| options.snapshot_every = 1).await;
    let job = head.admin().await.submit().await;
    // A stop in order takes the last snapshot.
    let head = head.restarted().await.stopped().await;
    break_snapshot(&head);
    let snapshots = "SELECT cast(max(sequence) AS TEXT) FROM snapshots";
    let before = head.ask(snapshots);
    let head = head.started().await;
    let client = head.admin().await;
    assert_eq!(client.show(job).await.state, JobState::Pending, "reads are served");
    let refusal = client.try_submit(submit()).await.expect_err("a broken head accepts no change");
    assert_eq!(refusal.code, RefusalCode::Internal);
    let sentence = "the head found its state broken: the jobs of submission 1 are";
    assert!(refusal.message.starts_with(sentence), "{}", refusal.message);
    // Its worker joins, which is journaled; neither that nor a stop leads to a snapshot.
    let _worker = head.worker(1, vec![]).await;
    let head = head.stopped().await;
    assert_eq!(head.ask(snapshots), before);
}
