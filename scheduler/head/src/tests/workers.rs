//! The links of workers: silent, replaced, drained.

use std::time::Duration;

use cohabit_net::{HelloRefusalCode, LinkError, Secret};
use cohabit_types::{
    Condition, Device, DeviceId, Inventory, JobId, JobState, NodeState, Order, Outcome, RefusalCode, Report,
    Time,
};

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

/// Root on one worker may report anything; what concerns no rank of its own costs the journal nothing.
#[tokio::test]
async fn reports_about_ranks_of_others_are_acknowledged_and_not_written_down() {
    let head = TestHead::start().await;
    let (client, mut worker) = (head.admin().await, head.worker(1, vec![]).await);
    let job = client.submit().await;
    let rank = worker.next_run().await.attempt.rank(0);
    let foreign = JobId::new(99).attempt(1).rank(0);
    let written = || head.ask("SELECT cast(count(*) AS TEXT) FROM events WHERE event LIKE '%report%'");
    worker.started(rank).await;
    let before = written();
    for _ in 0..600 {
        worker.report(Report::Started { rank: foreign, at: Time::EPOCH }).await;
    }
    worker.report(Report::PrivateUser { rank: foreign, uid: 0 }).await;
    worker
        .report(Report::Condition { device: DeviceId("none".into()), condition: Condition::default() })
        .await;
    worker.ended(foreign, Outcome::Exited(0)).await;
    assert_eq!(worker.next_order().await, Order::Acknowledge(foreign));
    assert_eq!(written(), before);
    worker.ended(rank, Outcome::Exited(0)).await;
    client.seen(job, |record| record.state == JobState::Completed).await;
    assert_ne!(written(), before);
}

#[tokio::test]
async fn a_worker_that_describes_an_impossible_node_is_refused() {
    let head = TestHead::start().await;
    let device = inventory().devices[0].clone();
    let device = |n: u32| Device { id: DeviceId(n.to_string().into()), ..device.clone() };
    let huge = Inventory { devices: (0..2_000).map(device).collect(), ..inventory() };
    let error = head.try_worker(1, None, huge).await.err().unwrap();
    assert!(error.to_string().contains("2000 devices, and 1024 are the most"), "{error}");
    head.worker(2, vec![]).await;
}

/// Each join is written down with the description of the node.
#[tokio::test]
async fn a_worker_that_joins_again_and_again_has_to_wait() {
    let head = TestHead::start().await;
    let mut incarnations = 1..;
    let error = loop {
        let incarnation = incarnations.next().unwrap();
        match head.try_worker(incarnation, None, inventory()).await {
            Ok(_) => assert!(incarnation < 100, "nothing stops it"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, LinkError::Refused { code: HelloRefusalCode::Busy, .. }), "{error}");
    assert!(error.to_string().contains("connects too often"), "{error}");
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
