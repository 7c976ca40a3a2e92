//! Lists: page after page, no more than were asked for.

use cohabit_client::types::{
    Feed, FeedCursor, FeedGap, Filter, JobId, JobRecord, JobState, JobUpdates, ListPage, Time, UpdateCursor,
};
use futures::{StreamExt, TryStreamExt};

use crate::kit::{Call, Cluster, Turn};
use crate::records::record;

fn page(numbers: impl IntoIterator<Item = u64>, more: bool) -> Turn {
    let numbered = |number| JobRecord { id: JobId::new(number), ..record(JobState::Completed, 1) };
    Turn::Listed(ListPage { jobs: numbers.into_iter().map(numbered).collect(), more })
}

fn asked(calls: &[Call]) -> Vec<(Option<u64>, u32)> {
    let page = |call: &Call| {
        let Call::List(filter) = call else { panic!("{call:?} is no list") };
        (filter.after.map(|job| job.number), filter.limit)
    };
    calls.iter().map(page).collect()
}

fn of_ada() -> Filter {
    Filter { user: Some("ada".into()), ..Filter::default() }
}

#[tokio::test]
async fn pages_follow_one_another() {
    let cluster = Cluster::new();
    let head = cluster.head([page([1, 2], true), page([5], false)]).await;
    let all = cluster.client_of(head.address).list_all(of_ada()).await.unwrap();
    assert_eq!(all.iter().map(|job| job.id.number).collect::<Vec<_>>(), [1, 2, 5]);
    assert_eq!(asked(&head.calls()), [(None, 500), (Some(2), 500)]);
}

#[tokio::test]
async fn a_page_is_requested_when_it_is_needed() {
    let cluster = Cluster::new();
    let head = cluster.head([page([1, 2], true)]).await;
    let first: Vec<JobRecord> =
        cluster.client_of(head.address).list(of_ada()).take(2).try_collect().await.unwrap();
    assert_eq!(first.len(), 2);
    assert_eq!(asked(&head.calls()), [(None, 500)]);
}

#[tokio::test]
async fn a_limit_counts_over_all_pages() {
    let cluster = Cluster::new();
    let head = cluster.head([page(1..=500, true), page(501..=503, true)]).await;
    let limited = Filter { limit: 503, ..of_ada() };
    assert_eq!(cluster.client_of(head.address).list_all(limited).await.unwrap().len(), 503);
    assert_eq!(asked(&head.calls()), [(None, 500), (Some(500), 3)]);
}

#[tokio::test]
async fn updates_are_asked_for_from_the_cursor_on() {
    let cluster = Cluster::new();
    let next = UpdateCursor { run: 7, position: 3 };
    let jobs = vec![record(JobState::Running, 2)];
    let updates = JobUpdates { gap: false, jobs, next, more: false };
    let head = cluster.head([Turn::Updates(updates.clone())]).await;
    let found = cluster.client_of(head.address).job_updates(Some(UpdateCursor { position: 1, ..next })).await;
    assert_eq!(found.unwrap(), updates);
    assert_eq!(head.calls(), [Call::JobUpdates(Some(UpdateCursor { position: 1, ..next }))]);
}

#[tokio::test]
async fn the_feed_is_asked_for_from_the_cursor_on() {
    let cluster = Cluster::new();
    let next = FeedCursor { number: 3, at: Time::from_micros(9) };
    let feed = Feed { gap: FeedGap::Entries(2), entries: Vec::new(), next, more: false };
    let head = cluster.head([Turn::Feed(feed.clone())]).await;
    assert_eq!(cluster.client_of(head.address).feed(Some(FeedCursor::START)).await.unwrap(), feed);
    assert_eq!(head.calls(), [Call::Feed(Some(FeedCursor::START))]);
}
