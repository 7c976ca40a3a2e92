//! Jobs that the head has removed from memory are found in the history.

use cohabit_types::{
    ColocationSample, DeviceId, Filter, JobId, JobRef, JobRevision, JobState, Outcome, RefusalCode, Report,
    SharingStrategy, Span,
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
