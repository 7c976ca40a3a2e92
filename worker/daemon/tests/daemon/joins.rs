//! How a worker joins the cluster, and why it may be refused.

use cohabit_net::{LinkError, LinkErrorKind};
use cohabit_types::{Bandwidth, DeviceKind, LinkBandwidths, Role};
use cohabit_worker_daemon::{WorkerDaemon, WorkerError};

use crate::kit::{Cluster, rank, run, shell, soon};

#[tokio::test]
async fn the_inventory_describes_the_host() {
    let mut cluster = Cluster::new().await;
    let mut options = cluster.options();
    options.name = Some("oak".into());
    options.links.interconnect = Some(Bandwidth(2_400_000_000_000));
    let (daemon, joined) = cluster.worker_with(options).await;
    let inventory = &joined.inventory;
    assert_eq!((inventory.name.as_str(), inventory.address.as_str()), ("oak", "127.0.0.1"));
    assert!(inventory.cpus > 0 && inventory.memory.0 > 1 << 20);
    let devices: Vec<_> = inventory.devices.iter().map(|device| (device.id.as_str(), device.kind)).collect();
    assert_eq!(devices, [("host-0", DeviceKind::Host), ("host-1", DeviceKind::Host)]);
    let unknown_on_loopback = None;
    let links =
        LinkBandwidths { network: unknown_on_loopback, interconnect: Some(Bandwidth(2_400_000_000_000)) };
    assert_eq!((inventory.links, inventory.held_ranks.as_slice()), (links, &[][..]));
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_broken_link_is_replaced_under_a_newer_key() {
    let mut cluster = Cluster::new().await;
    let (daemon, first) = cluster.worker().await;
    first.session.close();
    let second = cluster.joined().await;
    assert_eq!(first.key.node, second.key.node);
    assert!(first.key.incarnation < second.key.incarnation);
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_head_that_takes_reports_slowly_still_gets_heartbeats() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut joined) = cluster.worker().await;
    joined.takes_reports.send_replace(false);
    joined.order(run(1, shell("exit 0"))).await;
    joined.started(rank(1)).await;
    let before = *joined.heartbeats.borrow();
    soon("more heartbeats", joined.heartbeats.wait_for(|count| *count > before + 3)).await.unwrap();
    joined.takes_reports.send_replace(true);
    joined.ended(rank(1)).await;
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn an_invalid_token_ends_the_worker_with_a_reason() {
    let mut cluster = Cluster::new().await;
    let mut options = cluster.options();
    options.token = {
        let other = Cluster::new().await.options().token;
        let fingerprint = options.token.fingerprint().to_string();
        other.expose().replace(&other.fingerprint().to_string(), &fingerprint).parse().unwrap()
    };
    let mut daemon = WorkerDaemon::start(options).await.unwrap();
    let serving = async {
        loop {
            cluster.joined().await;
        }
    };
    let error = tokio::select! {
        joined = soon("the refusal", daemon.joined()) => joined.unwrap_err(),
        () = serving => unreachable!("it serves for ever"),
    };
    assert!(matches!(&error, WorkerError::Link(link) if link.kind() == LinkErrorKind::NotAllowed), "{error}");
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn the_worker_waits_for_a_head_that_is_not_running_yet() {
    let mut cluster = Cluster::new().await;
    let mut options = cluster.options();
    let real = options.head.clone();
    // A port that is bound but never accepts: its queue takes the connection, and the worker waits.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    options.head = silent.local_addr().unwrap().to_string();
    let mut daemon = WorkerDaemon::start(options.clone()).await.unwrap();
    let waited = tokio::time::timeout(std::time::Duration::from_millis(500), daemon.joined()).await;
    assert!(waited.is_err(), "it neither joined nor gave up");
    daemon.stop().await.unwrap();
    drop(silent);
    cluster.abandoned().await;
    options.head = real;
    let (daemon, _joined) = cluster.worker_with(options).await;
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_state_directory_belongs_to_one_daemon() {
    let mut cluster = Cluster::new().await;
    let (daemon, _joined) = cluster.worker().await;
    let refusal = WorkerDaemon::start(cluster.options()).await.unwrap_err();
    assert!(matches!(refusal, WorkerError::StateInUse(_)), "{refusal}");
    daemon.stop().await.unwrap();
    let (daemon, _joined) = cluster.worker().await;
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_token_of_the_wrong_kind_has_its_own_error() {
    let mut cluster = Cluster::new().await;
    let mut options = cluster.options();
    options.token = cluster.token("eve", Role::User);
    let mut daemon = WorkerDaemon::start(options).await.unwrap();
    let error = tokio::select! {
        joined = soon("the refusal", daemon.joined()) => joined.unwrap_err(),
        _ = cluster.joined() => unreachable!("it is not let in"),
    };
    assert!(matches!(&error, WorkerError::Link(LinkError::Refused { .. })), "{error}");
    assert!(error.to_string().contains("eve"), "{error}");
    daemon.stop().await.unwrap();
}
