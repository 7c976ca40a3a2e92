//! A link ends with its token.

use super::*;
use crate::LinkError;

#[tokio::test]
async fn a_client_is_cut_when_its_token_is_revoked_and_others_are_not() {
    let mut head = TestHead::start().await;
    let (ada, bea) = (head.client("ada").await, head.client("bea").await);
    let watch = ada.watch(patient(), Vec::new());
    let revoke = async {
        ada.ping(patient()).await.unwrap();
        head.tokens.revoke("ada").unwrap();
    };
    let (watched, ()) = in_time(async { tokio::join!(watch, revoke) }).await;
    assert!(watched.is_err());
    assert_eq!(head.next_end().await, LinkEnd::TokenRevoked);
    assert!(ada.ping(patient()).await.is_err());
    bea.ping(patient()).await.unwrap();
}

#[tokio::test]
async fn a_worker_is_cut_when_its_token_is_revoked() {
    let mut head = TestHead::start().await;
    let (link, session) = head.worker("node-a").await;
    head.tokens.revoke("node-a").unwrap();
    assert_eq!(in_time(session.closed).await, LinkEnd::TokenRevoked);
    assert_eq!(in_time(link.closed).await, LinkEnd::ClosedByPeer);
    assert!(session.orders.order(patient(), Vec::new()).await.is_err());
}

#[tokio::test]
async fn a_new_token_of_the_same_name_does_not_save_the_old_ones_link() {
    let mut head = TestHead::start().await;
    let _client = head.client("ada").await;
    head.tokens.revoke("ada").unwrap();
    let renewed = head.endpoint("ada", Role::User, None);
    assert_eq!(head.next_end().await, LinkEnd::TokenRevoked);
    connect_client(&renewed).await.unwrap();
}

#[tokio::test]
async fn a_link_is_cut_when_its_token_expires() {
    let mut head = TestHead::start().await;
    // A slow machine may need more than one go to connect before the token expires.
    let mut lifetime = Span::from_millis(200);
    let client = loop {
        let endpoint = head.endpoint(&format!("ada-{}", lifetime.as_micros()), Role::User, Some(lifetime));
        match connect_client(&endpoint).await {
            Ok((client, _welcome)) => break client,
            Err(LinkError::Refused { .. } | LinkError::Broken { .. }) => lifetime = lifetime * 2,
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(head.next_end().await, LinkEnd::TokenExpired);
    assert!(client.ping(patient()).await.is_err());
}
