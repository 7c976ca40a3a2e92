//! Clients that show all jobs are told which have changed.

use cohabit_types::{JobId, JobState, Outcome, UpdateCursor};

use crate::test_kit::cluster::{TestClient, TestHead};

/// The jobs that have changed since the cursor, and where the next answer begins.
async fn updated(client: &TestClient, after: UpdateCursor) -> (Vec<(JobId, JobState)>, UpdateCursor) {
    let updates = client.job_updates(Some(after)).await;
    assert!(!updates.gap && !updates.more, "{updates:?}");
    (updates.jobs.iter().map(|record| (record.id, record.state)).collect(), updates.next)
}

#[tokio::test]
async fn updates_name_the_jobs_that_have_changed_since_the_cursor() {
    let head = TestHead::start().await;
    let (client, mut worker) = (head.admin().await, head.worker(1, vec![]).await);
    let first = client.job_updates(None).await;
    assert!(first.gap && first.jobs.is_empty(), "{first:?}");
    let job = client.submit().await;
    let (jobs, next) = updated(&client, first.next).await;
    assert_eq!(jobs.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [job]);
    worker.run_one(Outcome::Exited(0)).await;
    client.seen(job, |record| record.state.is_terminal()).await;
    let (jobs, next) = updated(&client, next).await;
    assert_eq!(jobs, [(job, JobState::Completed)]);
    assert_eq!(updated(&client, next).await, (Vec::new(), next));
}

#[tokio::test]
async fn updates_of_many_jobs_come_in_parts() {
    let head = TestHead::start().await;
    let client = head.admin().await;
    let mut cursor = client.job_updates(None).await.next;
    let mut submitted = Vec::new();
    for _ in 0..200 {
        submitted.push(client.submit().await);
    }
    let (mut jobs, mut parts) = (Vec::new(), 0);
    loop {
        let part = client.job_updates(Some(cursor)).await;
        jobs.extend(part.jobs.iter().map(|record| record.id));
        (cursor, parts) = (part.next, parts + 1);
        if !part.more {
            break;
        }
    }
    assert_eq!((jobs, parts), (submitted, 2));
}

#[tokio::test]
async fn a_cursor_of_an_earlier_run_has_a_gap() {
    let (one, other) = (TestHead::start().await, TestHead::start().await);
    let cursor = one.admin().await.job_updates(None).await.next;
    let updates = other.admin().await.job_updates(Some(cursor)).await;
    assert!(updates.gap && updates.next.run != cursor.run, "{updates:?}");
}
