//! A job from its submission to its end, as clients and workers see it.

use std::time::Duration;

use cohabit_types::{
    Array, AttemptProgress, ChangeResult, FollowMode, IndexRange, JobChange, JobId, JobRevision, JobState,
    LogPosition, LogRequest, Order, Outcome, Progress, RefusalCode, Report, StopReason,
};

use crate::test_kit::cluster::{TestHead, within};
use crate::test_kit::submit;

#[tokio::test]
async fn a_job_runs_to_its_end_and_its_watcher_sees_each_step() {
    let head = TestHead::start().await;
    let (client, mut worker) = (head.admin().await, head.worker(1, vec![]).await);
    let job = client.submit().await;
    let run = worker.next_run().await;
    assert_eq!((run.attempt.job, run.user.as_str()), (job, client.user.as_str()));
    let rank = run.attempt.rank(0);
    worker.started(rank).await;
    client.seen(job, |record| record.state == JobState::Running).await;
    worker.ended(rank, Outcome::Exited(0)).await;
    assert_eq!(worker.next_order().await, Order::Acknowledge(rank));
    let record = client.seen(job, |record| record.state.is_terminal()).await;
    assert_eq!((record.state, record.nodes()), (JobState::Completed, vec!["box".to_owned()]));
    head.daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_repeated_report_is_acknowledged_again() {
    let head = TestHead::start().await;
    let (client, mut worker) = (head.admin().await, head.worker(1, vec![]).await);
    client.submit().await;
    let rank = worker.run_one(Outcome::Exited(0)).await;
    worker.ended(rank, Outcome::Exited(0)).await;
    assert_eq!(worker.next_order().await, Order::Acknowledge(rank));
}

#[tokio::test]
async fn a_cancelled_job_is_stopped_and_its_watcher_is_notified() {
    let head = TestHead::start_like(|options| options.watch_limit = Duration::from_secs(3_600)).await;
    let (client, mut worker) = (head.admin().await, head.worker(1, vec![]).await);
    let job = client.submit().await;
    let attempt = worker.next_run().await.attempt;
    worker.started(attempt.rank(0)).await;
    let revision = client.show(job).await.revision;
    let waiting = client.watch(vec![JobRevision { job, revision }]);
    let cancelling = async {
        assert_eq!(client.change(JobChange::Cancel, vec![job]).await, Ok(vec![(job, ChangeResult::Done)]));
    };
    let (woken, ()) = within(futures::future::join(waiting, cancelling)).await;
    let records = woken.unwrap();
    assert_eq!(records[0].state, JobState::Completing);
    assert_eq!(worker.next_order().await, Order::Stop { attempt, why: StopReason::Cancelled });
}

#[tokio::test]
async fn a_watch_without_a_change_ends_at_its_limit() {
    let head = TestHead::start_like(|options| options.watch_limit = Duration::from_millis(1)).await;
    let client = head.admin().await;
    let job = client.submit().await;
    let record = client.show(job).await;
    let watched = JobRevision { job, revision: record.revision };
    assert_eq!(client.watch(vec![watched]).await, Ok(vec![]));
}

#[tokio::test]
async fn a_watcher_of_more_jobs_than_one_message_holds_sees_them_all() {
    let head = TestHead::start().await;
    let client = head.admin().await;
    let mut submit = submit();
    let ranges = vec![IndexRange { first: 1, last: 1_500, step: 1 }];
    submit.spec.array = Some(Array { ranges, at_once: None });
    client.try_submit(submit).await.unwrap();
    let mut unseen: Vec<JobRevision> =
        (1..=1_500).map(|index| JobRevision { job: JobId::member(1, index), revision: 0 }).collect();
    while !unseen.is_empty() {
        let records = client.watch(unseen.clone()).await.unwrap();
        assert!(!records.is_empty());
        unseen.retain(|watched| records.iter().all(|record| record.id != watched.job));
    }
}

#[tokio::test]
async fn progress_is_shown_and_not_journaled() {
    let head = TestHead::start().await;
    let (client, mut worker) = (head.admin().await, head.worker(1, vec![]).await);
    let job = client.submit().await;
    let attempt = worker.next_run().await.attempt;
    worker.started(attempt.rank(0)).await;
    let before = head.ask("SELECT cast(max(sequence) AS TEXT) FROM events");
    let progress = Progress { step: 7, total: Some(9), ..Progress::default() };
    worker.report(Report::Progress(vec![AttemptProgress { attempt, progress: progress.clone() }])).await;
    let shown = client.show(job).await.progress.unwrap();
    assert_eq!(shown, Progress { at: shown.at, ..progress }, "the head says when it came");
    assert_eq!(head.ask("SELECT cast(max(sequence) AS TEXT) FROM events"), before);
}

#[tokio::test]
async fn jobs_of_concurrent_clients_have_different_numbers() {
    let head = TestHead::start().await;
    let client = head.admin().await;
    let submits = (0..200).map(|_| client.submit());
    let mut jobs = futures::future::join_all(submits).await;
    jobs.sort_unstable();
    assert_eq!(jobs.iter().map(|job| job.number).collect::<Vec<_>>(), (1..=200).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_retried_submission_creates_one_job() {
    let head = TestHead::start().await;
    let client = head.admin().await;
    let mut submit = submit();
    submit.idempotency_key = Some("once".into());
    let first = client.try_submit(submit.clone()).await.unwrap();
    let head = head.killed_and_started().await;
    let again = head.admin().await.try_submit(submit).await.unwrap();
    assert_eq!(first, again);
}

#[tokio::test]
async fn the_runtime_of_the_last_jobs_is_the_estimate_of_the_next() {
    let head = TestHead::start().await;
    let (client, mut worker) = (head.admin().await, head.worker(1, vec![]).await);
    for _ in 0..3 {
        client.submit().await;
        worker.run_one(Outcome::Exited(0)).await;
    }
    let learned = client.submit().await;
    let expected = client.show(learned).await.predicted.unwrap();
    assert_eq!(expected.runs, Some(3));
    assert!(expected.runtime.is_some() && expected.runtime_between.is_some(), "{expected:?}");
    let head = head.restarted().await;
    let client = head.admin().await;
    let relearned = client.submit().await;
    let predicted = client.show(relearned).await.predicted.unwrap();
    assert_eq!((predicted.runtime, predicted.runtime_between), (expected.runtime, expected.runtime_between));
}

#[tokio::test]
async fn a_log_is_read_from_the_worker_that_has_it() {
    let head = TestHead::start().await;
    let (client, mut worker) = (head.admin().await, head.worker(1, vec![]).await);
    let job = client.submit().await;
    let rank = worker.run_one(Outcome::Exited(0)).await;
    let request = LogRequest { rank, from: LogPosition::Start, at_end: FollowMode::Return };
    let chunk = client.read_log(request).await.unwrap();
    assert_eq!(chunk.records[0].bytes, format!("{rank} says hello\n").into_bytes());
    let nobody_s = LogRequest { rank: job.attempt(5).rank(0), ..request };
    assert_eq!(client.read_log(nobody_s).await.unwrap_err().code, RefusalCode::NotFound);
    drop(worker);
    while client.nodes().await.unwrap()[0].state != cohabit_types::NodeState::Unreachable {}
    let refusal = client.read_log(request).await.unwrap_err();
    assert_eq!(refusal.code, RefusalCode::Unavailable);
    assert!(refusal.message.contains("node box"), "{refusal}");
}
