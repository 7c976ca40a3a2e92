//! A journal that cannot be written for a while: nothing is applied that is not durable, and nothing is lost.

use cohabit_types::{HeldRank, HeldRankPhase, JobId, JobState, Order, Outcome, RankId, RefusalCode, Report};

use crate::test_kit::cluster::{TestHead, TestWorker, within};
use crate::test_kit::{at, submit};

/// A lock on the journal by another process: the head cannot write before this is dropped.
struct Lock(rusqlite::Connection);

impl Lock {
    fn on(head: &TestHead) -> Lock {
        let journal = rusqlite::Connection::open(head.folder.path().join("journal.sqlite")).unwrap();
        journal.execute_batch("BEGIN IMMEDIATE").unwrap();
        Lock(journal)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.0.execute_batch("ROLLBACK").unwrap();
    }
}

/// A worker, and the rank of a job that runs there.
async fn running_job(head: &TestHead) -> (TestWorker, JobId, RankId) {
    let mut worker = head.worker(1, vec![]).await;
    let job = head.admin().await.submit().await;
    let rank = worker.next_run().await.attempt.rank(0);
    worker.started(rank).await;
    (worker, job, rank)
}

fn end_of(rank: RankId) -> Report {
    Report::Ended {
        rank,
        outcome: Outcome::Exited(0),
        stopped: None,
        progress: None,
        at: at(0),
        usage: Vec::new(),
    }
}

#[tokio::test]
async fn while_the_journal_cannot_be_written_requests_are_refused_and_reports_wait() {
    let head = TestHead::start().await;
    let client = head.admin().await;
    let (mut worker, job, rank) = running_job(&head).await;
    let lock = Lock::on(&head);
    let mut reported = Box::pin(worker.report(end_of(rank)));
    // The first refusal shows that the commit of both has failed.
    tokio::select! {
        refused = client.try_submit(submit()) => {
            let refusal = refused.unwrap_err();
            assert_eq!(refusal.code, RefusalCode::StorageFailed);
            assert!(refusal.message.contains("journal.sqlite"), "{}", refusal.message);
        }
        () = &mut reported => panic!("nothing is acknowledged that is not durable"),
    }
    assert_eq!(client.show(job).await.state, JobState::Running);
    drop(lock);
    reported.await;
    assert_eq!(worker.next_order().await, Order::Acknowledge(rank));
    assert_eq!(client.show(job).await.state, JobState::Completed);
    let next = client.submit().await;
    assert_eq!(next.number, job.number + 1, "what was refused left nothing behind");
}

/// Nobody asks for a change meanwhile, so the head has to find out by itself.
#[tokio::test]
async fn a_journal_that_cannot_be_written_is_a_problem_of_the_head_until_it_can_be() {
    let head = TestHead::start().await;
    let client = head.admin().await;
    assert_eq!(client.head_problems().await, [""; 0]);
    let lock = Lock::on(&head);
    client.try_submit(submit()).await.unwrap_err();
    let problems = client.head_problems().await;
    let [problem] = &problems[..] else { panic!("{problems:?}") };
    for part in
        ["not been able to write its journal", "journal.sqlite", "close that program", "refuses changes"]
    {
        assert!(problem.contains(part), "{part} is missing: {problem}");
    }
    drop(lock);
    within(async {
        while !client.head_problems().await.is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
}

/// Its ranks would be stopped if it could not reach the head for long.
#[tokio::test]
async fn a_worker_whose_link_broke_is_let_in_while_the_journal_cannot_be_written() {
    let head = TestHead::start().await;
    let client = head.admin().await;
    let (worker, job, rank) = running_job(&head).await;
    let lock = Lock::on(&head);
    drop(worker);
    let held = vec![HeldRank { rank, phase: HeldRankPhase::Running(at(0)) }];
    // The join of the first is in the commit that fails, the other comes while the journal cannot be written.
    drop(within(head.worker(2, held.clone())).await);
    let mut worker = within(head.worker(3, held)).await;
    let mut reported = Box::pin(worker.report(end_of(rank)));
    tokio::select! {
        refused = client.try_submit(submit()) => drop(refused.unwrap_err()),
        () = &mut reported => panic!("nothing is acknowledged that is not durable"),
    }
    drop(lock);
    within(reported).await;
    assert_eq!(worker.next_order().await, Order::Acknowledge(rank));
    assert_eq!(client.show(job).await.state, JobState::Completed);
}

#[tokio::test]
async fn a_head_that_stops_while_its_journal_cannot_be_written_accepts_nothing() {
    let head = TestHead::start().await;
    let client = head.admin().await;
    let job = client.submit().await;
    let lock = Lock::on(&head);
    let refused = within(client.try_submit(submit())).await;
    assert!(refused.is_err(), "{refused:?}");
    drop(lock);
    let head = head.killed_and_started().await;
    let client = head.admin().await;
    assert_eq!(client.show(job).await.state, JobState::Pending);
    assert_eq!(client.submit().await.number, job.number + 1);
}
