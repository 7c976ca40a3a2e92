//! Stores that reach each other through the ports of their nodes.

use std::sync::Arc;

use cohabit_application_core::{FetchFailure, NodeNumber};
use cohabit_net::ApplicationTls;
use cohabit_types::{
    ApplicationAccess, ApplicationCredentials, ApplicationSecret, Bytes, CodeSnapshot, ContentHash, RankId,
    Rendezvous,
};
use tokio::task::{LocalSet, spawn_local};

use super::super::network::{NodeAddresses, admit_store, connect_stores};
use super::super::settings::ROOM_PATIENCE;
use super::kit::{MAKER, MIB, READER, ROOT, SECRET, TestStore, is_intact, member, object, writer_of};
use super::nodes::{TestNode, failed};
use crate::transport::{HelloCheck, NetworkAdmission, NetworkPort};

/// What the process of a store gets from its worker.
fn access(own: RankId, secret: ApplicationSecret, test: Option<&TestStore>) -> ApplicationAccess {
    ApplicationAccess {
        application: ROOT.attempt,
        member: own,
        credentials: ApplicationCredentials { secret, token: None },
        code: CodeSnapshot {
            manifest: ContentHash([1; 32]),
            folder: "/target".into(),
            files: 1,
            bytes: Bytes(1),
        },
        head: "127.0.0.1:7070".into(),
        directory: test.map_or_else(std::env::temp_dir, |test| test.folder.path().to_owned()),
        gpus: 0,
        node: "n0".into(),
        port: Some(Rendezvous { address: "127.0.0.1".into(), port: 0 }),
        coordinator: None,
        coordinator_node: "n0".into(),
    }
}

/// A node that fetches from those whose addresses it knows.
pub(super) fn fetching_node(addresses: &NodeAddresses, secret: ApplicationSecret, budget: u64) -> TestNode {
    let (access, known) = (access(member(9), secret, None), addresses.clone());
    let connector = connect_stores(&access, &ApplicationTls::new(&secret), move |node| known.of(node));
    TestNode::of(TestStore::of_node(budget, ROOM_PATIENCE, connector))
}

/// Node 0, which others reach at these addresses, as long as the `LocalSet` runs that this is called in.
pub(super) fn serving_node(budget: u64) -> (TestStore, NodeAddresses) {
    let source = TestStore::with_budget(budget);
    let port = NetworkPort::open(&access(ROOT, SECRET, Some(&source))).unwrap().unwrap();
    let addresses = NodeAddresses::default();
    addresses.know(NodeNumber(0), Rendezvous { address: "127.0.0.1".into(), port: port.number() });
    let check = HelloCheck { secret: SECRET, own: ROOT };
    let admission = Arc::new(NetworkAdmission::new(ApplicationTls::new(&SECRET), check));
    let serving = Arc::clone(&source.store);
    spawn_local(port.serve(drop, move |stranger| serving.serve_network(admit_store(&admission, stranger))));
    (source, addresses)
}

#[tokio::test]
async fn objects_travel_encrypted_and_strangers_get_none() {
    LocalSet::new().run_until(travel()).await;
}

async fn travel() {
    let (source, addresses) = serving_node(128 * MIB);
    let maker = source.link(MAKER);
    maker.store(object(1), writer_of(1, 70 * MIB)).await.unwrap();
    maker.store(object(2), writer_of(2, MIB)).await.unwrap();
    let mut reader = fetching_node(&addresses, SECRET, 128 * MIB);
    let link = reader.link(READER);
    for (number, bytes) in [(1, 70 * MIB), (2, MIB)] {
        let mapping = reader.read_from(&link, object(number), bytes, 0).await.unwrap();
        assert!(is_intact(number, &mapping), "object {number}");
    }
    let mut stranger = fetching_node(&addresses, ApplicationSecret([8; 32]), 128 * MIB);
    let refused = failed(stranger.fetch_wanted(object(2), MIB, 0).await);
    assert!(refused.starts_with("node 0: its store cannot be reached: "), "{refused}");
    assert_eq!(stranger.bytes().await, (0, 0));
    // Nobody listens on a node without an address.
    assert_eq!(stranger.fetch(object(2), MIB, 5).await, Err(FetchFailure::Missing));
}
