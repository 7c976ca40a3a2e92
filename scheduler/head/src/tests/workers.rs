//! The links of workers: silent, replaced, drained.

use std::time::Duration;

use cohabit_net::{HelloRefusalCode, LinkError, Secret};
use cohabit_types::{JobState, NodeState, Outcome, RefusalCode};

use crate::test_kit::cluster::{TestClient, TestHead, within};
use crate::test_kit::{inventory, node};

async fn node_state(client: &TestClient) -> NodeState {
    let nodes = client.nodes().await.unwrap();
    assert_eq!(nodes.len(), 1);
    nodes[0].state
}

#[tokio::test]
async fn a_silent_worker_loses_its_link() {
    let head = TestHead::start_like(|options| options.silence_limit = Duration::from_millis(20)).await;
    let (client, worker) = (head.admin().await, head.worker(1, vec![]).await);
    within(worker.link.closed.clone()).await;
    within(async { while node_state(&client).await != NodeState::Unreachable {} }).await;
    let losses = r#"SELECT cast(count(*) AS TEXT) FROM events WHERE event LIKE '{"worker_lost"%'"#;
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

/// An impostor that knows the node's id, a worker token and a higher number of a link.
#[tokio::test]
async fn an_impostor_is_refused_admins_hear_of_it_and_the_true_worker_goes_on() {
    let head = TestHead::start().await;
    let (ada, admin) = (head.user("ada").await, head.admin().await);
    let mut worker = head.worker(1, Vec::new()).await;
    let job = ada.submit().await;
    let rank = worker.next_run().await.attempt.rank(0);
    for credential in [None, Some(Secret::new([8; Secret::LENGTH]))] {
        let error = head.try_worker(u64::MAX, credential, inventory()).await.err().unwrap();
        assert!(matches!(error, LinkError::Refused { code: HelloRefusalCode::WrongRole, .. }), "{error}");
    }
    worker.started(rank).await;
    worker.ended(rank, Outcome::Exited(0)).await;
    ada.seen(job, |record| record.state == JobState::Completed).await;
    assert_eq!(ada.show(job).await.attempts.len(), 1, "nothing was lost or ran again");
    let refused = admin.refused_workers().await.unwrap();
    assert_eq!(refused.iter().map(|it| (it.node, it.times)).collect::<Vec<_>>(), [(node(), 2)]);
    assert!(ada.refused_workers().await.unwrap_err().message.contains("only an admin"));
}

#[tokio::test]
async fn a_node_that_is_unbound_joins_with_a_new_credential() {
    let head = TestHead::start().await;
    let (ada, admin) = (head.user("ada").await, head.admin().await);
    let new = Some(Secret::new([8; Secret::LENGTH]));
    drop(head.worker(1, Vec::new()).await);
    let head = head.restarted().await;
    assert!(head.try_worker(2, new, inventory()).await.is_err(), "the credential outlives the head");
    drop((ada, admin));
    let (ada, admin) = (head.user("bea").await, head.admin().await);
    assert!(ada.unbind("box").await.unwrap_err().message.contains("only an admin"));
    assert_eq!(admin.unbind("none").await.unwrap_err().code, RefusalCode::NotFound);
    assert_eq!(admin.unbind("box").await, Ok("box".to_owned()));
    assert_eq!(admin.unbind("box").await, Ok("box".to_owned()), "it may be repeated");
    head.try_worker(2, new, inventory()).await.unwrap();
}
