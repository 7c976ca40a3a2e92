//! Watching and waiting: which changes are reported, that none is reported twice, and watches over broken
//! links.

use cohabit_client::Error;
use cohabit_client::types::{JobId, JobRecord, JobRevision, JobState, Progress, RefusalCode};
use futures::TryStreamExt;

use crate::kit::{Call, Cluster, Turn, jobs, refusal};
use crate::records::record;

const SEVEN: JobId = JobId::new(7);

fn show(numbers: &[u64]) -> Call {
    Call::Show(numbers.iter().copied().map(JobId::new).collect())
}

fn watch(known: &[(u64, u64)]) -> Call {
    let watched = |&(number, revision): &(u64, u64)| JobRevision { job: JobId::new(number), revision };
    Call::Watch(known.iter().map(watched).collect())
}

fn numbered(number: u64, state: JobState, revision: u64) -> JobRecord {
    JobRecord { id: JobId::new(number), ..record(state, revision) }
}

fn at_step(step: u64, revision: u64) -> JobRecord {
    let progress = Some(Progress { step, ..Progress::default() });
    JobRecord { progress, ..record(JobState::Running, revision) }
}

async fn states(records: impl futures::TryStream<Ok = JobRecord, Error = Error>) -> Vec<JobState> {
    records.map_ok(|record| record.state).try_collect().await.unwrap()
}

#[tokio::test]
async fn a_watch_reports_each_change_once_and_ends_with_the_job() {
    let cluster = Cluster::new();
    let pending = record(JobState::Pending, 1);
    let turns = [
        jobs([pending.clone()]),
        jobs([pending.clone()]),
        jobs([]),
        jobs([record(JobState::Running, 2)]),
        jobs([record(JobState::Completed, 3)]),
    ];
    let head = cluster.head(turns).await;
    let seen = states(cluster.client_of(head.address).watch(SEVEN)).await;
    assert_eq!(seen, [JobState::Pending, JobState::Running, JobState::Completed]);
    let expected = [show(&[7]), watch(&[(7, 1)]), watch(&[(7, 1)]), watch(&[(7, 1)]), watch(&[(7, 2)])];
    assert_eq!(head.calls(), expected);
}

/// Why a job waits changes without a change of the job.
#[tokio::test]
async fn a_watch_tells_why_a_job_waits_now() {
    let cluster = Cluster::new();
    let because = |reason: &str| JobRecord { reason: reason.into(), ..record(JobState::Pending, 1) };
    let turns = [
        jobs([because("it is first in the queue")]),
        Turn::Wait,
        jobs([because("no GPU is free")]),
        jobs([record(JobState::Completed, 2)]),
    ];
    let head = cluster.head(turns).await;
    let seen = cluster.client_of(head.address).watch(SEVEN).map_ok(|record| record.reason);
    let seen: Vec<String> = seen.try_collect().await.unwrap();
    assert_eq!(seen[..2], ["it is first in the queue", "no GPU is free"]);
    assert_eq!(head.calls(), [show(&[7]), watch(&[(7, 1)]), watch(&[(7, 0)]), watch(&[(7, 1)])]);
}

#[tokio::test]
async fn after_a_broken_link_states_are_queried_again_but_not_reported_again() {
    let cluster = Cluster::new();
    // The head comes back with revisions of its own, one of which happens to be known.
    let turns = [
        jobs([record(JobState::Running, 5)]),
        Turn::Cut,
        jobs([record(JobState::Running, 2)]),
        Turn::Cut,
        jobs([record(JobState::Completed, 2)]),
    ];
    let head = cluster.head(turns).await;
    let seen = states(cluster.client_of(head.address).watch(SEVEN)).await;
    assert_eq!(seen, [JobState::Running, JobState::Completed]);
    assert_eq!(head.calls(), [show(&[7]), watch(&[(7, 5)]), show(&[7]), watch(&[(7, 2)]), show(&[7])]);
}

#[tokio::test]
async fn jobs_that_are_added_are_asked_for_with_the_others() {
    let cluster = Cluster::new();
    let turns = [
        jobs([record(JobState::Pending, 1)]),
        jobs([numbered(8, JobState::Running, 3)]),
        jobs([record(JobState::Completed, 2)]),
        jobs([numbered(8, JobState::Failed, 4)]),
    ];
    let head = cluster.head(turns).await;
    let mut watcher = cluster.client_of(head.address).watch_jobs();
    watcher.add(SEVEN);
    let first = watcher.changes().await.unwrap();
    watcher.add(JobId::new(8));
    let mut seen: Vec<_> = first.into_iter().map(|record| (record.id.number, record.state)).collect();
    for _ in 0..3 {
        let changed = watcher.changes().await.unwrap();
        seen.extend(changed.into_iter().map(|record| (record.id.number, record.state)));
    }
    let states = [JobState::Pending, JobState::Running, JobState::Completed, JobState::Failed];
    assert_eq!(seen, [7, 8, 7, 8].into_iter().zip(states).collect::<Vec<_>>());
    let expected = [show(&[7]), watch(&[(7, 1), (8, 0)]), watch(&[(7, 1), (8, 3)]), watch(&[(8, 3)])];
    assert_eq!(head.calls(), expected);
}

#[tokio::test]
async fn waiting_for_several_jobs_queries_the_remaining_ones_and_returns_them_in_order() {
    let cluster = Cluster::new();
    let turns = [
        jobs([
            numbered(3, JobState::Running, 1),
            numbered(1, JobState::Failed, 4),
            numbered(2, JobState::Pending, 1),
        ]),
        jobs([numbered(2, JobState::Completed, 2)]),
        jobs([numbered(3, JobState::Cancelled, 2)]),
    ];
    let head = cluster.head(turns).await;
    let ended = cluster.client_of(head.address).wait(&[3, 1, 2].map(JobId::new)).await.unwrap();
    let ended: Vec<_> = ended.iter().map(|record| (record.id.number, record.state)).collect();
    assert_eq!(ended, [(3, JobState::Cancelled), (1, JobState::Failed), (2, JobState::Completed)]);
    assert_eq!(head.calls(), [show(&[3, 1, 2]), watch(&[(3, 1), (2, 1)]), watch(&[(3, 1)])]);
}

#[tokio::test]
async fn waiting_for_no_jobs_sends_no_call() {
    let cluster = Cluster::new();
    let head = cluster.head([]).await;
    assert_eq!(cluster.client_of(head.address).wait(&[]).await.unwrap(), []);
    assert_eq!(head.calls(), []);
}

#[tokio::test]
async fn progress_is_reported_when_it_changes() {
    let cluster = Cluster::new();
    let completed = JobRecord { progress: at_step(20, 0).progress, ..record(JobState::Completed, 5) };
    let turns = [
        jobs([record(JobState::Running, 1)]),
        jobs([at_step(10, 2)]),
        jobs([JobRecord { priority: 9, ..at_step(10, 3) }]),
        jobs([at_step(20, 4)]),
        jobs([completed]),
    ];
    let head = cluster.head(turns).await;
    let progress = cluster.client_of(head.address).progress(SEVEN);
    let steps: Vec<u64> = progress.map_ok(|progress| progress.step).try_collect().await.unwrap();
    assert_eq!(steps, [10, 20]);
}

#[tokio::test]
async fn a_watch_of_no_job_ends_with_the_refusal() {
    let cluster = Cluster::new();
    let refused = Turn::Refuse(refusal(RefusalCode::NotFound));
    let head = cluster.head([refused]).await;
    let mut watch = cluster.client_of(head.address).watch(SEVEN);
    let first = watch.try_next().await;
    assert!(matches!(&first, Err(Error::Refused(why)) if why.code == RefusalCode::NotFound), "{first:?}");
    assert!(watch.try_next().await.unwrap().is_none());
}
