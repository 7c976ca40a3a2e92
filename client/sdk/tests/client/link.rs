//! The link itself: who gets in, what happens when the head goes away and comes back, and when patience ends.

use std::mem;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cohabit_client::types::{JobId, JobRef, RefusalCode};
use cohabit_client::{Client, ConnectOptions, Error};
use futures::future::join_all;

use crate::kit::{Call, Cluster, Turn, refusal};

fn resolved() -> Turn {
    Turn::Resolved(vec![JobId::new(7)])
}

fn question() -> [JobRef; 1] {
    [JobRef::Last(0)]
}

fn asked() -> Call {
    Call::Resolve(question().to_vec())
}

#[tokio::test]
async fn a_client_comes_back_when_its_head_was_restarted_on_the_same_port() {
    let cluster = Cluster::new();
    let head = cluster.head([resolved()]).await;
    let address = head.address;
    let client = cluster.client_of(address);
    client.resolve(&question()).await.unwrap();
    head.stop().await;
    // The question is on its way before there is anybody to answer it.
    let asking = tokio::spawn(async move { client.resolve(&question()).await });
    let head = cluster.head_at(address, [resolved()]).await;
    asking.await.unwrap().unwrap();
    assert_eq!(head.calls(), [asked()]);
}

#[tokio::test]
async fn a_client_that_looks_for_its_head_finds_it_at_another_address() {
    let cluster = Cluster::new();
    let head = cluster.head([resolved()]).await;
    let token = cluster.token.clone();
    let address = Arc::new(Mutex::new(Some(head.address)));
    let known = Arc::clone(&address);
    let client = Client::finding(move || {
        let address = known.lock().unwrap().ok_or_else(|| Error::Configuration("it is away".into()))?;
        Ok(ConnectOptions { head: address.to_string(), token: token.clone() })
    });
    let client = client.unwrap();
    client.resolve(&question()).await.unwrap();
    *address.lock().unwrap() = None;
    head.stop().await;
    let asking = tokio::spawn(async move { client.resolve(&question()).await });
    let head = cluster.head([resolved()]).await;
    *address.lock().unwrap() = Some(head.address);
    asking.await.unwrap().unwrap();
    assert_eq!(head.calls(), [asked()]);
}

#[tokio::test]
async fn calls_to_a_head_that_shuts_down_are_retried() {
    let cluster = Cluster::new();
    let ending = Turn::Refuse(refusal(RefusalCode::Unavailable));
    let head = cluster.head([ending, resolved()]).await;
    cluster.client_of(head.address).resolve(&question()).await.unwrap();
    assert_eq!(head.calls(), [asked(), asked()]);
}

#[tokio::test]
async fn after_the_retry_timeout_the_head_is_unreachable() {
    let cluster = Cluster::new();
    let head = cluster.head([]).await;
    let client = cluster.client_of(head.address).with_retry_timeout(Duration::from_millis(300));
    client.accepted().await.unwrap();
    head.stop().await;
    let result = client.resolve(&question()).await;
    assert!(matches!(result, Err(Error::Unreachable(_))), "{result:?}");
}

#[tokio::test]
async fn the_first_connection_is_tried_once() {
    let cluster = Cluster::new();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let result =
        Client::connect(ConnectOptions { head: closed.to_string(), token: cluster.token.clone() }).await;
    match result {
        Err(Error::Unreachable(why)) => assert!(why.to_string().contains(&closed.to_string()), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_unknown_token_is_not_allowed_and_not_retried() {
    let cluster = Cluster::new();
    let head = cluster.head([resolved()]).await;
    let secret = "0".repeat(64);
    let text = cluster.token.expose();
    let (known, _) = text.rsplit_once('.').unwrap();
    let token = format!("{known}.{secret}").parse().unwrap();
    let client = Client::disconnected(ConnectOptions { head: head.address.to_string(), token });
    let result = client.resolve(&question()).await;
    assert!(matches!(&result, Err(Error::NotAllowed(why)) if !why.contains(&secret)), "{result:?}");
    assert_eq!(head.calls(), []);
}

#[tokio::test]
async fn the_head_of_another_cluster_gets_no_call() {
    let (cluster, other) = (Cluster::new(), Cluster::new());
    let head = other.head([resolved()]).await;
    let result = cluster.client_of(head.address).resolve(&question()).await;
    assert!(matches!(result, Err(Error::Link(_))), "{result:?}");
    assert_eq!(head.calls(), []);
}

#[tokio::test]
async fn clones_share_one_link_and_its_successor() {
    let cluster = Cluster::new();
    let mut is_first = true;
    let turn = move |_: &Call| if mem::take(&mut is_first) { Turn::Cut } else { resolved() };
    let head = cluster.head_with("127.0.0.1:0".parse().unwrap(), turn).await;
    let client = cluster.client_of(head.address);
    let asking = (0..8).map(|_| {
        let client = client.clone();
        async move { client.resolve(&question()).await }
    });
    for answer in join_all(asking).await {
        assert_eq!(answer.unwrap(), vec![JobId::new(7)]);
    }
    assert_eq!(head.connections(), 2);
}
