//! Restarts after a stop and after a kill: nothing is lost and nothing runs twice.

use cohabit_types::{HeldRank, HeldRankPhase, JobState, Outcome};

use crate::HeadError;
use crate::test_kit::at;
use crate::test_kit::cluster::{TestHead, within};

#[tokio::test]
async fn a_pending_job_survives_a_restart_and_runs() {
    let head = TestHead::start().await;
    let job = head.admin().await.submit().await;
    let head = head.restarted().await;
    let client = head.admin().await;
    assert_eq!(client.show(job).await.state, JobState::Pending);
    let mut worker = head.worker(1, vec![]).await;
    worker.run_one(Outcome::Exited(0)).await;
    client.seen(job, |record| record.state == JobState::Completed).await;
}

#[tokio::test]
async fn a_job_that_runs_during_a_kill_is_adopted() {
    let head = TestHead::start().await;
    let mut worker = head.worker(1, vec![]).await;
    let job = head.admin().await.submit().await;
    let rank = worker.next_run().await.attempt.rank(0);
    worker.started(rank).await;
    let head = head.killed_and_started().await;
    let client = head.admin().await;
    assert_eq!(client.show(job).await.state, JobState::Running);
    let mut worker = head.worker(2, vec![HeldRank { rank, phase: HeldRankPhase::Running(at(0)) }]).await;
    worker.ended(rank, Outcome::Exited(0)).await;
    assert_eq!(worker.next_order().await, cohabit_types::Order::Acknowledge(rank));
    let record = client.seen(job, |record| record.state.is_terminal()).await;
    assert_eq!((record.state, record.attempts.len()), (JobState::Completed, 1));
}

#[tokio::test]
async fn accepted_requests_survive_a_kill() {
    let mut head = TestHead::start_like(|options| options.snapshot_every = 7).await;
    let mut jobs = Vec::new();
    for _ in 0..4 {
        let client = head.admin().await;
        let submits = (0..5).map(|_| client.submit());
        jobs.extend(futures::future::join_all(submits).await);
        head = head.killed_and_started().await;
    }
    let client = head.admin().await;
    // The kill also ends a snapshot in progress.
    while head.ask("SELECT cast(count(*) AS TEXT) FROM snapshots") != "2" {
        jobs.push(client.submit().await);
    }
    let head = head.killed_and_started().await;
    let client = head.admin().await;
    for job in jobs {
        assert_eq!(client.show(job).await.state, JobState::Pending);
    }
}

#[tokio::test]
async fn a_stopped_head_leaves_no_events_to_replay() {
    let head = TestHead::start().await;
    let job = head.admin().await.submit().await;
    let head = head.restarted().await;
    let submits = "SELECT cast(count(*) AS TEXT) FROM events WHERE event LIKE '%Submit%'";
    assert_eq!(head.ask(submits), "1");
    let replayed = format!("{submits} AND sequence > (SELECT max(sequence) FROM snapshots)");
    assert_eq!(head.ask(&replayed), "0");
    assert_eq!(head.admin().await.show(job).await.state, JobState::Pending);
}

#[tokio::test]
async fn tokens_and_fingerprint_survive_a_restart() {
    let head = TestHead::start().await;
    let token = std::fs::read(head.daemon.admin_token_file()).unwrap();
    let fingerprint = head.daemon.fingerprint();
    let head = head.restarted().await;
    assert_eq!(std::fs::read(head.daemon.admin_token_file()).unwrap(), token);
    assert_eq!(head.daemon.fingerprint(), fingerprint);
}

#[tokio::test]
async fn the_address_file_exists_while_the_head_runs() {
    let head = TestHead::start().await;
    let file = head.folder.path().join("address");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("{}\n", head.daemon.address()));
    head.daemon.stop().await.unwrap();
    assert!(!file.exists());
}

#[tokio::test]
async fn a_head_whose_journal_fails_ends_with_the_reason() {
    let mut head = TestHead::start().await;
    let client = head.admin().await;
    rusqlite::Connection::open(head.folder.path().join("journal.sqlite"))
        .unwrap()
        .execute_batch(
            "CREATE TRIGGER full BEFORE INSERT ON events BEGIN SELECT raise(FAIL, 'no space'); END",
        )
        .unwrap();
    let context = cohabit_net::context_for(cohabit_types::Span::from_secs(30));
    let asked = client.head.submit(context, Box::new(crate::test_kit::submit().spec), None);
    // Either the refusal or the end of the link comes first; in both cases no job was accepted.
    assert!(!matches!(within(asked).await, Ok(Ok(_))));
    let failure = within(head.daemon.failed()).await;
    assert!(matches!(failure, HeadError::Journal { .. }), "{failure:?}");
}

#[tokio::test]
async fn a_head_without_its_journal_starts_only_where_an_empty_cluster_is_wanted() {
    let head = TestHead::start().await;
    let job = head.admin().await.submit().await;
    let stopped = head.stopped().await;
    let journal = stopped.folder.path().join("journal.sqlite");
    let kept = std::fs::read(&journal).unwrap();
    std::fs::remove_file(&journal).unwrap();
    let refusal = stopped.try_started().await.err().unwrap();
    assert!(matches!(refusal, HeadError::JournalMissing { .. }), "{refusal}");
    assert!(!journal.exists(), "nothing was made in its place");
    std::fs::write(&journal, kept).unwrap();
    let head = stopped.started().await;
    assert_eq!(head.admin().await.show(job).await.state, JobState::Pending);
    let stopped = head.stopped().await;
    std::fs::remove_file(&journal).unwrap();
    let options = crate::HeadOptions { new_cluster: true, ..stopped.options().clone() };
    let daemon = crate::HeadDaemon::start(options).await.unwrap();
    daemon.stop().await.unwrap();
    // The tokens are those of the cluster before.
    let head = stopped.started().await;
    assert_eq!(head.admin().await.submit().await.number, 1);
}
