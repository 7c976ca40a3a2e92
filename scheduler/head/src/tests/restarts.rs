//! A head that ends, in whatever way, loses nothing and runs nothing twice.

use cohabit_types::{HeldRank, HeldRankPhase, JobState, Outcome};

use crate::HeadError;
use crate::kit::at;
use crate::kit::cluster::{TestHead, within};

#[tokio::test]
async fn a_job_that_waits_survives_a_restart_and_runs_then() {
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
async fn a_job_that_runs_while_the_head_is_killed_is_adopted() {
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
async fn what_was_answered_before_a_kill_is_there_after_it() {
    let mut head = TestHead::start_like(|options| options.snapshot_every = 7).await;
    let mut jobs = Vec::new();
    for _ in 0..4 {
        let client = head.admin().await;
        let submits = (0..5).map(|_| client.submit());
        jobs.extend(futures::future::join_all(submits).await);
        head = head.killed_and_started().await;
    }
    let client = head.admin().await;
    // A snapshot that is under way dies with the head.
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
async fn a_head_that_is_stopped_leaves_nothing_to_be_decided_anew() {
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
async fn tokens_and_cluster_stay_the_same() {
    let head = TestHead::start().await;
    let token = std::fs::read(head.daemon.admin_token_file()).unwrap();
    let fingerprint = head.daemon.fingerprint();
    let head = head.restarted().await;
    assert_eq!(std::fs::read(head.daemon.admin_token_file()).unwrap(), token);
    assert_eq!(head.daemon.fingerprint(), fingerprint);
}

#[tokio::test]
async fn a_running_head_says_where_it_listens_and_a_stopped_one_does_not() {
    let head = TestHead::start().await;
    let file = head.folder.path().join("address");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("{}\n", head.daemon.address()));
    assert!(head.daemon.join_command().contains(&head.daemon.address().to_string()));
    head.daemon.stop().await.unwrap();
    assert!(!file.exists());
}

#[tokio::test]
async fn a_head_whose_journal_fails_ends_and_says_why() {
    let mut head = TestHead::start().await;
    let client = head.admin().await;
    rusqlite::Connection::open(head.folder.path().join("journal.sqlite"))
        .unwrap()
        .execute_batch(
            "CREATE TRIGGER full BEFORE INSERT ON events BEGIN SELECT raise(FAIL, 'no space'); END",
        )
        .unwrap();
    let context = cohabit_net::context_for(cohabit_types::Span::from_secs(30));
    let asked = client.head.submit(context, Box::new(crate::kit::submit().spec), None);
    // Whether the refusal or the end of the link comes first, no job was accepted.
    assert!(!matches!(within(asked).await, Ok(Ok(_))));
    let failure = within(head.daemon.failed()).await;
    assert!(matches!(failure, HeadError::Journal { .. }), "{failure:?}");
}
