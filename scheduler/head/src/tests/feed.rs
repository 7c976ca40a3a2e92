//! Clients that tell people follow the feed.

use cohabit_types::{Feed, FeedCursor, FeedGap, FeedKind, JobSpec, NotifyRequest, Outcome};

use crate::test_kit::cluster::{TestClient, TestHead};

/// Follows the feed from this cursor until there are so many entries.
async fn entries(client: &TestClient, mut after: FeedCursor, count: usize) -> Vec<(u64, FeedKind, String)> {
    let mut found = Vec::new();
    while found.len() < count {
        let Feed { gap, entries, next, .. } = client.feed(Some(after)).await;
        assert_eq!(gap, FeedGap::None);
        found.extend(entries.into_iter().map(|entry| {
            let user = entry.event.job.map(|job| job.user);
            (entry.number, entry.event.kind, user.unwrap_or_default())
        }));
        after = next;
    }
    assert_eq!(found.len(), count, "{found:?}");
    found
}

#[tokio::test]
async fn the_feed_tells_what_happens_to_jobs_and_wakes_who_waits_for_it() {
    let head = TestHead::start().await;
    let (client, mut worker) = (head.admin().await, head.worker(1, vec![]).await);
    let start = client.feed(None).await;
    assert!(start.entries.is_empty() && start.next == FeedCursor::START, "{start:?}");
    let request = NotifyRequest { event: FeedKind::End, channel: Some("mail".into()) };
    let asked = |spec: &mut JobSpec| spec.notify = vec![request.clone()];
    client.submit_like(asked).await;
    // The poll begins before the job starts.
    let (feed, ()) = tokio::join!(client.feed(Some(start.next)), async {
        worker.run_one(Outcome::Exited(3)).await;
    });
    assert_eq!(feed.entries[0].event.kind, FeedKind::Start);
    let ended = match feed.entries.get(1) {
        Some(ended) => ended.clone(),
        None => client.feed(Some(feed.next)).await.entries[0].clone(),
    };
    let job = ended.event.job.unwrap();
    assert_eq!((ended.number, ended.event.kind, job.exit_code), (2, FeedKind::Fail, Some(3)));
    assert_eq!(job.requests, [request]);
}

#[tokio::test]
async fn a_user_follows_the_own_jobs_and_an_admin_all() {
    let head = TestHead::start().await;
    let (ada, eve, admin) = (head.user("ada").await, head.user("eve").await, head.admin().await);
    let mut worker = head.worker(1, vec![]).await;
    ada.submit().await;
    worker.run_one(Outcome::Exited(0)).await;
    eve.submit().await;
    worker.run_one(Outcome::Exited(0)).await;
    let users = |found: Vec<(u64, FeedKind, String)>| {
        found.into_iter().map(|(number, _, user)| format!("{number} {user}")).collect::<Vec<_>>()
    };
    assert_eq!(users(entries(&admin, FeedCursor::START, 4).await), ["1 ada", "2 ada", "3 eve", "4 eve"]);
    assert_eq!(users(entries(&eve, FeedCursor::START, 2).await), ["3 eve", "4 eve"]);
    assert_eq!(users(entries(&ada, FeedCursor::START, 2).await), ["1 ada", "2 ada"]);
}

#[tokio::test]
async fn a_kill_loses_no_entry_and_repeats_none() {
    let mut head = TestHead::start_like(|options| options.snapshot_every = 3).await;
    let mut expected = Vec::new();
    for incarnation in 1..=4 {
        let client = head.admin().await;
        let mut worker = head.worker(incarnation, vec![]).await;
        for _ in 0..2 {
            let job = client.submit().await;
            worker.run_one(Outcome::Exited(0)).await;
            client.seen(job, |record| record.state.is_terminal()).await;
            let number = expected.len() as u64;
            expected.push((number + 1, FeedKind::Start, "root".to_owned()));
            expected.push((number + 2, FeedKind::End, "root".to_owned()));
        }
        drop(worker);
        head = head.killed_and_started().await;
    }
    let admin = head.admin().await;
    let user = admin.own_token().await.unwrap().name;
    let expected: Vec<_> =
        expected.into_iter().map(|(number, kind, _)| (number, kind, user.clone())).collect();
    assert_eq!(entries(&admin, FeedCursor::START, expected.len()).await, expected);
}

/// A crash may also lose rows that were not written when the events were durable: the replay writes them.
#[tokio::test]
async fn entries_that_a_crash_kept_from_the_disk_are_written_by_the_next_start() {
    let head = TestHead::start().await;
    let (client, mut worker) = (head.admin().await, head.worker(1, vec![]).await);
    let job = client.submit().await;
    worker.run_one(Outcome::Exited(0)).await;
    client.seen(job, |record| record.state.is_terminal()).await;
    let before = entries(&client, FeedCursor::START, 2).await;
    head.ask("DELETE FROM feed WHERE number = 2 RETURNING 'x'");
    let head = head.killed_and_started().await;
    assert_eq!(entries(&head.admin().await, FeedCursor::START, 2).await, before);
}
