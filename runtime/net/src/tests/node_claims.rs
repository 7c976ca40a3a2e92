//! Workers that claim to be a node: each node has one, whatever tokens others know.

use std::os::unix::fs::PermissionsExt;

use cohabit_types::{Inventory, NewToken};

use super::*;
use crate::{HelloRefusalCode, LinkError, NodeCredentials};

/// A worker with this token, node number, name and credential.
struct Claim<'t> {
    token: &'t Endpoint,
    node: u128,
    name: &'static str,
    credential: Option<u8>,
}

impl Claim<'_> {
    /// Whether the head accepts it, or what it says.
    async fn made_at(&self, head: &TestHead) -> Result<(), String> {
        let WorkerHello { key, inventory, .. } = hello();
        let hello = WorkerHello {
            key: WorkerKey { node: NodeId(uuid::Uuid::from_u128(self.node)), ..key },
            credential: self.credential.map(|byte| Secret::new([byte; Secret::LENGTH])),
            inventory: Inventory { name: self.name.into(), ..inventory },
        };
        match connect_worker(self.token, hello, head.worker_service()).await {
            Ok(_) => Ok(()),
            Err(LinkError::Refused {
                code: HelloRefusalCode::WrongRole | HelloRefusalCode::Busy,
                message,
                ..
            }) => Err(message),
            Err(other) => panic!("{other}"),
        }
    }
}

fn node_token(head: &TestHead, name: &str, node: &str) -> Endpoint {
    let new = NewToken {
        name: name.into(),
        role: Role::Worker,
        account: None,
        node: Some(node.into()),
        expires_in: None,
    };
    let token = head.tokens.create_for(&new, clock::now()).unwrap();
    Endpoint { address: head.address.clone(), token }
}

#[tokio::test]
async fn the_id_of_a_node_and_any_worker_token_do_not_take_it_over() {
    let head = TestHead::start().await;
    let token = head.endpoint("workers", Role::Worker, None);
    let claim = |credential| Claim { token: &token, node: 1, name: "w1", credential };
    claim(Some(1)).made_at(&head).await.unwrap();
    let other = claim(Some(2)).made_at(&head).await.unwrap_err();
    assert!(other.contains("another credential") && other.contains("worker unbind"), "{other}");
    let none = claim(None).made_at(&head).await.unwrap_err();
    assert!(none.contains("sends none"), "{none}");
    claim(Some(1)).made_at(&head).await.unwrap();
    let node = NodeId(uuid::Uuid::from_u128(1));
    let refused = head.nodes.refused_workers();
    let seen: Vec<_> = refused.iter().map(|it| (it.node, it.address.as_str(), it.times)).collect();
    assert_eq!(seen, [(node, "127.0.0.1", 2)]);
    let admin = head.endpoint("admin", Role::Admin, None);
    assert!(Claim { token: &admin, ..claim(Some(2)) }.made_at(&head).await.is_err(), "an admin's neither");
}

#[tokio::test]
async fn a_credential_outlives_the_head_until_it_is_forgotten() {
    let head = TestHead::start().await;
    let token = head.endpoint("workers", Role::Worker, None);
    let claim = |credential| Claim { token: &token, node: 1, name: "w1", credential };
    claim(Some(1)).made_at(&head).await.unwrap();
    let path = head.state.path().join("node-credentials.json");
    let stored = std::fs::read_to_string(&path).unwrap();
    assert!(!stored.contains(&"01".repeat(32)), "only a digest is kept: {stored}");
    let node = NodeId(uuid::Uuid::from_u128(1));
    for _ in 0..2 {
        head.nodes.forget(node).unwrap();
    }
    assert!(!std::fs::read_to_string(&path).unwrap().contains(&node.to_string()));
    claim(Some(2)).made_at(&head).await.unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap().matches(&node.to_string()).count(), 1);
}

#[tokio::test]
async fn a_token_of_a_node_serves_one_worker_of_that_name() {
    let head = TestHead::start().await;
    let token = node_token(&head, "for-w1", "w1");
    let claim = |node, name, credential| Claim { token: &token, node, name, credential };
    let other_name = claim(2, "w2", Some(2)).made_at(&head).await.unwrap_err();
    assert!(other_name.contains("is for the node 'w1'") && other_name.contains("--name w1"), "{other_name}");
    assert!(claim(1, "w1", None).made_at(&head).await.is_err(), "a worker without a credential");
    assert_eq!(head.nodes.refused_workers(), [], "of ids that anybody may make up nothing is noted");
    claim(1, "w1", Some(1)).made_at(&head).await.unwrap();
    claim(1, "w1", Some(1)).made_at(&head).await.unwrap();
    let in_use = claim(3, "w1", Some(3)).made_at(&head).await.unwrap_err();
    assert!(in_use.contains("already serves another worker"), "{in_use}");
    head.tokens.revoke("for-w1").unwrap();
    let token = node_token(&head, "for-w1", "w1");
    Claim { token: &token, ..claim(3, "w1", Some(3)) }.made_at(&head).await.unwrap();
}

#[tokio::test]
async fn a_worker_of_the_protocol_before_joins_until_its_node_has_a_credential() {
    let head = TestHead::start().await;
    let token = head.endpoint("workers", Role::Worker, None);
    let claim = |credential| Claim { token: &token, node: 1, name: "w1", credential };
    claim(None).made_at(&head).await.unwrap();
    claim(None).made_at(&head).await.unwrap();
    claim(Some(1)).made_at(&head).await.unwrap();
    claim(None).made_at(&head).await.unwrap_err();
}

#[test]
fn a_file_that_cannot_be_used_is_refused_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("node-credentials.json");
    for (content, reason) in [
        ("{ half", "restore it from a backup"),
        (r#"{"schema": 1, "nodes": {"w1": {}}}"#, "restore it from a backup"),
        (r#"{"schema": 9, "nodes": []}"#, "format version 9, and this version of Cohabit reads 1 to 1"),
    ] {
        crate::private_file::replace(&path, content.as_bytes()).unwrap();
        let error = NodeCredentials::open(&path).unwrap_err().to_string();
        assert!(error.contains(reason) && error.contains("node-credentials.json"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
    }
}

#[tokio::test]
async fn a_token_for_any_machine_does_not_fill_the_disk_with_nodes() {
    let state = tempfile::tempdir().unwrap();
    let known = format!("{{\"sha256\": \"{0}\", \"token_sha256\": \"{0}\"}}", "ab".repeat(32));
    let node = |number| format!("\"{}\": {known}", NodeId(uuid::Uuid::from_u128(number)));
    let nodes: Vec<String> = (1..=10_000).map(node).collect();
    let path = state.path().join("node-credentials.json");
    std::fs::write(&path, format!("{{\"schema\": 1, \"nodes\": {{{}}}}}", nodes.join(", "))).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let head = TestHead::start_in(state, ListenerLimits::default()).await;
    let token = head.endpoint("workers", Role::Worker, None);
    let claim = Claim { token: &token, node: 20_000, name: "w1", credential: Some(1) };
    let refused = claim.made_at(&head).await.unwrap_err();
    assert!(refused.contains("10000 nodes") && refused.contains("worker unbind"), "{refused}");
    head.nodes.forget(NodeId(uuid::Uuid::from_u128(7))).unwrap();
    claim.made_at(&head).await.unwrap();
}
