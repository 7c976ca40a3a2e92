//! A journal that cannot be written for a while: nothing that was not durable happens, and nothing is lost.

use cohabit_types::{JobState, Order, Outcome, RefusalCode, Report};

use crate::kit::cluster::{TestHead, within};
use crate::kit::{at, submit};

/// Somebody else's hold on the journal: it cannot be written before this is dropped.
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

#[tokio::test]
async fn while_the_journal_cannot_be_written_requests_are_refused_and_reports_wait() {
    let head = TestHead::start().await;
    let client = head.admin().await;
    let mut worker = head.worker(1, vec![]).await;
    let job = client.submit().await;
    let rank = worker.next_run().await.attempt.rank(0);
    worker.started(rank).await;
    let lock = Lock::on(&head);
    let ended = Report::Ended { rank, outcome: Outcome::Exited(0), stopped: None, progress: None, at: at(0) };
    let mut reported = Box::pin(worker.report(ended));
    // The first refusal says that the commit which was to make both durable has failed.
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

#[tokio::test]
async fn a_head_that_ends_while_its_journal_cannot_be_written_has_accepted_nothing_more() {
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
