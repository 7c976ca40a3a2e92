//! An event that ends every start: it is named, set aside and kept, and nothing else is lost.

use cohabit_net::{HelloRefusalCode, LinkError};
use cohabit_types::{JobState, Outcome};

use crate::test_kit::cluster::{StoppedHead, TestHead};
use crate::{HeadError, RecoveryMode, quarantine, retry_replay, unreplayable_event};

/// What starts of a head leave that died while they replayed this event.
fn starts_died_with(head: &StoppedHead, event: u64, starts: u32) {
    let note = format!(r#"{{"event": {event}, "starts": {starts}}}"#);
    std::fs::write(head.folder.path().join("replaying.json"), note).unwrap();
}

/// The number of the event that submitted the job with this name.
fn submission(head: &StoppedHead, name: &str) -> u64 {
    let sql = format!(
        "SELECT printf('%d', sequence) FROM events WHERE event LIKE '%\"Submit\"%' AND event LIKE '%\"{name}\"%'"
    );
    head.ask(&sql).parse().unwrap()
}

/// A head that ran one job, has a poisonous submission and one after it, and was killed.
async fn poisoned() -> (StoppedHead, u64) {
    let head = TestHead::start_like(|options| options.snapshot_every = u64::MAX).await;
    let ada = head.admin().await;
    let mut worker = head.worker(1, Vec::new()).await;
    ada.submit_like(|spec| spec.name = "before".into()).await;
    worker.run_one(Outcome::Exited(0)).await;
    drop(worker);
    ada.submit_like(|spec| {
        spec.name = "poison".into();
        spec.environment.insert("KEPT".into(), "in the quarantine".into());
    })
    .await;
    ada.submit_like(|spec| spec.name = "after".into()).await;
    let head = head.killed();
    let event = submission(&head, "poison");
    (head, event)
}

#[tokio::test]
async fn an_event_that_ends_every_start_is_set_aside_and_nothing_else_is_lost() {
    let (head, event) = poisoned().await;
    starts_died_with(&head, event, 2);
    let error = head.try_started().await.err().unwrap();
    assert!(matches!(error, HeadError::CannotReplay { event: named, .. } if named == event), "{error}");
    let message = error.to_string();
    assert!(message.contains(&format!("recover --quarantine {event}")), "{message}");
    let found = unreplayable_event(head.folder.path()).unwrap().unwrap();
    assert!(found.what.contains("poison") && found.why.contains("last 2 starts"), "{found:?}");
    let wrong = quarantine(head.folder.path(), event + 1).unwrap_err();
    assert!(matches!(wrong, HeadError::Replayable { .. }), "{wrong}");
    quarantine(head.folder.path(), event).unwrap();
    assert!(head.ask("SELECT event FROM quarantine").contains("in the quarantine"), "it is kept");
    let head = head.started().await;
    let admin = head.admin().await;
    let records: Vec<_> = admin.records((1..=3).map(cohabit_types::JobId::new).collect()).await.unwrap();
    let seen: Vec<_> = records.iter().map(|it| (it.name.as_str(), it.state)).collect();
    let expected =
        [("before", JobState::Completed), ("poison", JobState::Held), ("after", JobState::Pending)];
    assert_eq!(seen, expected);
    assert!(records[1].work.contains("an admin set this job aside"), "{}", records[1].work);
    head.restarted().await.admin().await.submit().await;
}

#[tokio::test]
async fn one_start_that_ended_is_tried_again_and_so_is_an_event_on_request() {
    let (head, event) = poisoned().await;
    starts_died_with(&head, event, 1);
    // Killed: an orderly stop takes a snapshot, after which the event is not replayed.
    let head = head.started().await.killed();
    assert!(!head.folder.path().join("replaying.json").exists(), "the start got past it");
    starts_died_with(&head, event, 2);
    assert!(head.try_started().await.is_err());
    retry_replay(head.folder.path()).unwrap();
    head.started().await;
}

/// As after a backup was restored, which lacks the event.
#[tokio::test]
async fn a_note_on_an_event_that_is_not_replayed_stops_nobody() {
    let (head, event) = poisoned().await;
    starts_died_with(&head, event + 1_000, 9);
    assert_eq!(unreplayable_event(head.folder.path()).unwrap(), None);
    starts_died_with(&head, event + 1_000, 9);
    head.started().await;
}

#[tokio::test]
async fn a_head_in_recovery_mode_tells_everybody_until_the_event_is_set_aside() {
    let (head, event) = poisoned().await;
    starts_died_with(&head, event, 5);
    let error = head.try_started().await.err().unwrap();
    let recovery = RecoveryMode::start(head.options(), &error).await.unwrap().unwrap();
    let address = recovery.address();
    let resolved = tokio::spawn(recovery.until_resolved());
    let refused = head.refused_client(address).await;
    let LinkError::Refused { code: HelloRefusalCode::Recovering, message, .. } = refused else {
        panic!("{refused}")
    };
    assert!(message.contains("recovery mode") && message.contains(&event.to_string()), "{message}");
    quarantine(head.folder.path(), event).unwrap();
    resolved.await.unwrap();
    head.started().await;
    let other = HeadError::ended();
    let folder = tempfile::tempdir().unwrap();
    assert!(RecoveryMode::start(&crate::HeadOptions::new(folder.path()), &other).await.unwrap().is_none());
}

#[test]
fn a_directory_without_a_journal_is_no_healthy_head() {
    let folder = tempfile::tempdir().unwrap();
    let absent = folder.path().join("none");
    let error = unreplayable_event(&absent).unwrap_err().to_string();
    assert!(error.contains("there is no journal of a head in") && error.contains("--state"), "{error}");
    assert!(!absent.exists(), "a mistaken path is not created");
}

#[tokio::test]
async fn a_journal_that_can_be_replayed_has_nothing_to_set_aside() {
    let head = TestHead::start().await.stopped().await;
    assert_eq!(unreplayable_event(head.folder.path()).unwrap(), None);
    assert!(matches!(quarantine(head.folder.path(), 1), Err(HeadError::Replayable { event: 1 })));
    let head = head.started().await;
    let in_use = unreplayable_event(head.folder.path()).unwrap_err();
    assert!(matches!(in_use, HeadError::InUse { .. }), "{in_use}");
}

/// Jobs are numbered in the order of their submissions.
#[tokio::test]
async fn a_submission_that_cannot_be_read_is_set_aside_and_later_jobs_keep_their_numbers() {
    let (head, event) = poisoned().await;
    let journal = rusqlite::Connection::open(head.folder.path().join("journal.sqlite")).unwrap();
    let damage = "UPDATE events SET event = replace(event, '\"poison\"', '\"poison%') WHERE sequence = ?1";
    journal.execute(damage, [event]).unwrap();
    drop(journal);
    let found = unreplayable_event(head.folder.path()).unwrap().unwrap();
    assert_eq!(found.what, "a damaged submission");
    assert!(found.why.contains("cannot be read") && found.why.contains("1 of them submissions"), "{found:?}");
    quarantine(head.folder.path(), event).unwrap();
    let head = head.started().await;
    let records = head.admin().await.records((1..=3).map(cohabit_types::JobId::new).collect()).await.unwrap();
    let seen: Vec<_> = records.iter().map(|it| (&*it.name, &*it.user, it.state)).collect();
    let user = seen[2].1;
    assert_eq!(seen[1], (seen[1].0, user, JobState::Held));
    assert_eq!(seen[2], ("after", user, JobState::Pending));
}
