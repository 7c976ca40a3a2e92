//! Checkpoints that pass through a real head from one worker to another.

use cohabit_types::{
    Bytes, CheckpointPiece, CheckpointRequest, CheckpointSource, Incarnation, Inventory, JobChange, NodeId,
    Outcome, Refusal, RefusalCode, Span, WorkerKey,
};

use crate::CheckpointOptions;
use crate::test_kit::cluster::{TestHead, TestWorker, within};
use crate::test_kit::inventory;

impl TestWorker {
    async fn checkpoints(&self, request: CheckpointRequest) -> Result<CheckpointPiece, Refusal> {
        within(self.head().read_checkpoints(cohabit_net::context_for(Span::from_secs(60)), request))
            .await
            .unwrap()
    }
}

/// Another worker than that of `TestHead::worker`.
async fn other_worker(head: &TestHead) -> TestWorker {
    let inventory = Inventory { name: "other".into(), ..inventory() };
    let key = WorkerKey { node: NodeId(uuid::Uuid::from_u128(99)), incarnation: Incarnation(1) };
    head.try_worker_as(key, None, inventory).await.unwrap()
}

#[tokio::test]
async fn a_worker_reads_the_checkpoints_of_what_it_is_to_start_and_no_others() {
    let head = TestHead::start().await;
    let client = head.user("ada").await;
    let job = client.submit().await;
    let mut first = head.worker(1, vec![]).await;
    let rank = job.attempt(1).rank(0);
    assert_eq!(first.next_run().await.checkpoints, None);
    first.started(rank).await;
    let mut second = other_worker(&head).await;
    let request = |attempt| CheckpointRequest { attempt: job.attempt(attempt), node_rank: 0, offset: 0 };
    assert_eq!(second.checkpoints(request(1)).await.unwrap_err().code, RefusalCode::NotFound);
    let node =
        head.admin().await.nodes().await.unwrap().into_iter().find(|it| it.name != "other").unwrap().name;
    head.admin().await.drain(&node).await.unwrap();
    client.change(JobChange::Requeue, vec![job]).await.unwrap();
    first.ended(rank, Outcome::Exited(0)).await;
    let order = second.next_run().await;
    assert_eq!(order.checkpoints, Some(CheckpointSource { attempt: 1, node: node.clone() }));
    assert_eq!(second.checkpoints(request(2)).await.unwrap().bytes, b"tar");
    assert_eq!(first.checkpoints(request(2)).await.unwrap_err().code, RefusalCode::NotFound);
    drop(first);
    client.seen(job, |_| true).await;
    let away = loop {
        match second.checkpoints(request(2)).await {
            Err(refusal) => break refusal.message,
            // The head has not noticed yet.
            Ok(_) => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
        }
    };
    assert!(away.contains("is not connected") || away.contains("did not answer"), "{away}");
}

#[tokio::test]
async fn a_directory_that_all_nodes_share_is_named_in_each_job() {
    let head = TestHead::start_like(|options| {
        options.checkpoints = CheckpointOptions { directory: Some("/shared/".into()), limit: Bytes(0) };
    })
    .await;
    let client = head.user("ada").await;
    let (job, own) =
        (client.submit().await, client.submit_like(|spec| spec.checkpoint = Some("own".into())).await);
    let mut worker = head.worker(1, vec![]).await;
    let folder = worker.next_run().await.spec.checkpoint.clone().unwrap();
    assert!(
        folder.starts_with(&format!("/shared/{job}-")) && folder.len() == "/shared/1-".len() + 8,
        "{folder}"
    );
    assert_eq!(client.show(job).await.labels.checkpoint, Some(folder));
    assert_eq!(worker.next_run().await.spec.checkpoint.as_deref(), Some("own"));
    assert_eq!(client.show(own).await.labels.checkpoint.as_deref(), Some("own"));
}
