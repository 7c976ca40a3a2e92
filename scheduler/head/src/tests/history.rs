//! Jobs that the head has removed from memory are found in the history.

use std::collections::BTreeMap;

use cohabit_types::{
    ChangeResult, ColocationSample, DeviceId, Explanation, Filter, JobChange, JobId, JobRef, JobRevision,
    JobState, Outcome, RefusalCode, Report, SharingStrategy, Span,
};

use crate::test_kit::at;
use crate::test_kit::cluster::{TestClient, TestHead, within};

/// A head that has removed a job from memory right after its end.
async fn head_with_removed_job() -> (TestHead, TestClient, JobId) {
    let head = TestHead::start_like(|options| options.config.retention = Span::ZERO).await;
    let (client, mut worker) = (head.admin().await, head.worker(1, vec![]).await);
    let job = client.submit().await;
    worker.run_one(Outcome::Exited(3)).await;
    let forgotten = async {
        let known = || "SELECT cast(count(*) AS TEXT) FROM events WHERE event = '\"timer_fired\"'";
        while head.ask(known()) == "0" {
            client.nodes().await.unwrap();
        }
    };
    within(forgotten).await;
    (head, client, job)
}

#[tokio::test]
async fn a_removed_job_is_shown_explained_resolved_and_watched() {
    let (_head, client, job) = head_with_removed_job().await;
    let record = client.show(job).await;
    assert_eq!((record.state, record.exit_code), (JobState::Failed, Some(3)));
    let sentences = client.explain(job).await.unwrap().sentences;
    assert!(sentences[0].contains("ended as FAILED"), "{sentences:?}");
    let references = vec![JobRef::Id(job), JobRef::Range(1, 9)];
    assert_eq!(client.resolve(references).await, Ok(vec![job, job]));
    let seen = client.seen(job, |record| record.state.is_terminal()).await;
    assert_eq!(seen, record);
}

#[tokio::test]
async fn removed_and_live_jobs_are_listed_and_watched_together() {
    let (_head, client, job) = head_with_removed_job().await;
    let live = client.submit().await;
    let all = Filter { limit: 10, ..Filter::default() };
    let page = client.list(all.clone()).await.unwrap();
    assert_eq!(page.jobs.iter().map(|record| record.id).collect::<Vec<_>>(), [job, live]);
    let one = Filter { limit: 1, ..all.clone() };
    let first = client.list(one.clone()).await.unwrap();
    assert_eq!((first.jobs.len(), first.jobs[0].id, first.more), (1, job, true));
    let rest = Filter { after: Some(job), ..one };
    let second = client.list(rest).await.unwrap();
    assert_eq!((second.jobs[0].id, second.more), (live, false));
    let both = [job, live].map(|job| JobRevision { job, revision: 0 });
    let records = client.watch(both.to_vec()).await.unwrap();
    assert_eq!(records.len(), 2);
    let shown = client.records(vec![live, job]).await.unwrap();
    assert_eq!(shown.iter().map(|record| record.id).collect::<Vec<_>>(), [live, job]);
}

#[tokio::test]
async fn an_unknown_job_is_not_found() {
    let (_head, client, _) = head_with_removed_job().await;
    let never = JobId::new(99);
    let refusals = [
        client.records(vec![never]).await.unwrap_err(),
        client.explain(never).await.unwrap_err(),
        client.resolve(vec![JobRef::Id(never)]).await.unwrap_err(),
        client.watch(vec![JobRevision { job: never, revision: 0 }]).await.unwrap_err(),
    ];
    for refusal in refusals {
        assert_eq!(refusal.code, RefusalCode::NotFound);
    }
}

#[tokio::test]
async fn samples_are_written_to_the_history_and_not_to_the_journal() {
    let head = TestHead::start().await;
    let (client, mut worker) = (head.admin().await, head.worker(1, vec![]).await);
    client.submit().await;
    let rank = worker.next_run().await.attempt.rank(0);
    let sample = ColocationSample {
        rank,
        device: DeviceId("host-0".into()),
        gpu: "host slot".into(),
        sharing: SharingStrategy::Exclusive,
        neighbors: vec![],
        from: at(1),
        to: at(2),
        steps: 10,
        rate: 10.0,
        memory: None,
        utilization: None,
    };
    worker.report(Report::ColocationSamples(vec![sample])).await;
    worker.ended(rank, Outcome::Exited(0)).await;
    let head = head.restarted().await;
    assert_eq!(head.ask("SELECT job || ' ' || steps FROM stretches"), "1 10");
    assert_eq!(
        head.ask("SELECT cast(count(*) AS TEXT) FROM events WHERE event LIKE '%ColocationSamples%'"),
        "0"
    );
}

/// A head that has archived a job right after its end, with what it said of the job before.
async fn head_with_archived_job() -> (TestHead, TestClient, JobId, Explanation) {
    let head = TestHead::start_like(|options| options.config.archive_after = Span::from_secs(2)).await;
    let (client, mut worker) = (head.admin().await, head.worker(1, vec![]).await);
    let job = client.submit_like(|spec| spec.environment = epochs()).await;
    worker.run_one(Outcome::Exited(3)).await;
    let explanation = client.explain(job).await.unwrap();
    until_archived(&head, &client, 1).await;
    (head, client, job, explanation)
}

fn epochs() -> BTreeMap<String, String> {
    BTreeMap::from([("EPOCHS".to_owned(), "3".to_owned())])
}

async fn requeued(client: &TestClient, job: JobId) -> ChangeResult {
    client.change(JobChange::Requeue, vec![job]).await.unwrap().remove(0).1
}

/// Waits until the archive has parts of so many submissions.
async fn until_archived(head: &TestHead, client: &TestClient, submissions: u64) {
    let count = || head.ask("SELECT cast(count(DISTINCT number) AS TEXT) FROM archive");
    let archived = async {
        while count() != submissions.to_string() {
            client.nodes().await.unwrap();
        }
    };
    within(archived).await;
}

#[tokio::test]
async fn an_archived_job_is_shown_and_explained_as_before_after_restarts_too() {
    let (head, client, job, explanation) = head_with_archived_job().await;
    let record = client.show(job).await;
    assert_eq!((record.state, record.exit_code), (JobState::Failed, Some(3)));
    assert_eq!(client.explain(job).await.unwrap(), explanation);
    assert!(explanation.history.len() >= 4, "{explanation:?}");
    assert_eq!(client.resolve(vec![JobRef::Last(0)]).await, Ok(vec![job]));
    let listed = client.list(Filter { limit: 10, ..Filter::default() }).await.unwrap();
    assert_eq!(listed.jobs.iter().map(|record| record.id).collect::<Vec<_>>(), [job]);
    drop(client);
    let head = head.restarted().await.killed_and_started().await;
    let client = head.admin().await;
    assert_eq!(client.explain(job).await.unwrap(), explanation);
    assert_eq!(client.resolve(vec![JobRef::Last(0)]).await, Ok(vec![job]));
}

#[tokio::test]
async fn an_archived_job_is_queued_again_with_all_that_it_was_submitted_with() {
    let (head, client, job, _) = head_with_archived_job().await;
    assert_eq!(requeued(&client, job).await, ChangeResult::Done);
    let mut worker = head.worker(2, vec![]).await;
    let run = worker.next_run().await;
    assert_eq!((run.attempt, &run.spec.environment), (job.attempt(2), &epochs()));
    worker.ended(run.attempt.rank(0), Outcome::Exited(0)).await;
    let record = client.seen(job, |record| record.state.is_terminal()).await;
    assert_eq!((record.state, record.attempts.len()), (JobState::Completed, 2));
    let history = client.explain(job).await.unwrap().history;
    let archived_again = async {
        while head.ask("SELECT cast(max(ended_at_us) AS TEXT) FROM archive")
            != record.ended_at.unwrap().as_micros().to_string()
        {
            client.nodes().await.unwrap();
        }
    };
    within(archived_again).await;
    assert_eq!(client.explain(job).await.unwrap().history, history);
}

/// What a crash took of the archive, the next start writes again.
#[tokio::test]
async fn a_head_that_crashed_before_it_wrote_the_archive_writes_it_at_its_next_start() {
    let (head, client, job, explanation) = head_with_archived_job().await;
    drop(client);
    let policy = || std::sync::Arc::new(|| cohabit_policy::parse_policy("fifo").unwrap());
    let head = head.crashed_and_started_with("DELETE FROM archive", policy()).await;
    let client = head.admin().await;
    assert_eq!(client.explain(job).await.unwrap(), explanation);
    assert_eq!(requeued(&client, job).await, ChangeResult::Done);
}

/// Nothing was lost silently: the record is left, and the change says what to do.
#[tokio::test]
async fn a_job_whose_archive_is_gone_keeps_its_record_and_cannot_be_queued_again() {
    let (head, client, job, _) = head_with_archived_job().await;
    drop(client);
    let stopped = head.stopped().await;
    let journal = rusqlite::Connection::open(stopped.folder.path().join("journal.sqlite")).unwrap();
    journal.execute_batch("DELETE FROM archive").unwrap();
    drop(journal);
    let head = stopped.started().await;
    let client = head.admin().await;
    assert_eq!(client.show(job).await.state, JobState::Failed);
    let sentences = client.explain(job).await.unwrap().sentences;
    assert!(sentences[2].contains("only its record is kept"), "{sentences:?}");
    let result = requeued(&client, job).await;
    let ChangeResult::Refused(refusal) = result else { panic!("{result:?}") };
    assert_eq!(refusal.code, RefusalCode::NotFound);
    assert!(refusal.message.contains("submit it again"), "{refusal}");
}

#[tokio::test]
async fn an_archived_array_in_several_parts_is_queued_again_as_a_whole() {
    let head = TestHead::start_like(|options| options.config.archive_after = Span::from_secs(1)).await;
    let client = head.admin().await;
    let array = client
        .submit_like(|spec| {
            spec.array = Some((0..=1_199).into());
            spec.held = true;
        })
        .await;
    client.change(JobChange::Cancel, vec![array]).await.unwrap();
    let last = JobId::member(array.number, 1_199);
    let before = client.explain(last).await.unwrap();
    until_archived(&head, &client, 1).await;
    assert_eq!(head.ask("SELECT cast(count(*) AS TEXT) FROM archive"), "3");
    assert_eq!(client.explain(last).await.unwrap(), before);
    assert_eq!(requeued(&client, last).await, ChangeResult::Done);
    let summary = client.show(array).await.array.unwrap();
    assert_eq!((summary.members, summary.count(JobState::Cancelled)), (1_200, 1_199));
    drop(client);
    let head = head.killed_and_started().await;
    let summary = head.admin().await.show(array).await.array.unwrap();
    assert_eq!((summary.members, summary.count(JobState::Cancelled)), (1_200, 1_199));
}
