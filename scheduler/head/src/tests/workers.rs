//! The links of workers: silent, doubled, outdated.

use std::time::Duration;

use cohabit_types::NodeState;

use crate::kit::cluster::{TestClient, TestHead, within};

async fn node_state(client: &TestClient) -> NodeState {
    let nodes = client.nodes().await.unwrap();
    assert_eq!(nodes.len(), 1);
    nodes[0].state
}

#[tokio::test]
async fn a_worker_that_falls_silent_loses_its_link() {
    let head = TestHead::start_like(|options| options.silence_limit = Duration::from_millis(20)).await;
    let (client, worker) = (head.admin().await, head.worker(1, vec![]).await);
    within(worker.link.closed.clone()).await;
    within(async { while node_state(&client).await != NodeState::Unreachable {} }).await;
    let losses = r#"SELECT cast(count(*) AS TEXT) FROM events WHERE event LIKE '{"Lost"%'"#;
    assert_eq!(head.ask(losses), "1");
}

#[tokio::test]
async fn a_newer_link_replaces_the_older_one() {
    let head = TestHead::start().await;
    let client = head.admin().await;
    let older = head.worker(1, vec![]).await;
    let mut newer = head.worker(2, vec![]).await;
    within(older.link.closed.clone()).await;
    assert_eq!(node_state(&client).await, NodeState::Up);
    let job = client.submit().await;
    assert_eq!(newer.next_run().await.attempt.job, job);
}

#[tokio::test]
async fn a_drained_node_takes_no_job_until_it_is_resumed() {
    let head = TestHead::start().await;
    let (client, mut worker) = (head.admin().await, head.worker(1, vec![]).await);
    client.drain("box").await.unwrap();
    assert_eq!(node_state(&client).await, NodeState::Drained);
    let job = client.submit().await;
    client.resume("box").await.unwrap();
    assert_eq!(worker.next_run().await.attempt.job, job);
}
