//! Sessions between nodes, whatever happens to connections.

use std::cell::Cell;
use std::rc::Rc;

use cohabit_types::{RankId, Rendezvous};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{LocalSet, spawn_local};

use super::kit::{CALLEE, CallingProcess, PORT, SECRET, TestNode, broken, member};
use crate::transport::SocketName;

/// How many bytes from the dialing end pass before a connection is cut: more than a handshake has.
const BYTES_TO_CUT: usize = 9_000;

/// A network between two nodes that cuts the first connections.
struct CuttingProxy {
    at: Rendezvous,
    cuts: Rc<Cell<usize>>,
}

impl CuttingProxy {
    async fn start(to: &Rendezvous, most_cuts: usize) -> CuttingProxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = Rendezvous { port: listener.local_addr().unwrap().port(), ..to.clone() };
        let (cuts, counted, to) = (Rc::<Cell<usize>>::default(), Rc::default(), to.port);
        let proxy = CuttingProxy { at, cuts: Rc::clone(&counted) };
        drop(cuts);
        spawn_local(async move {
            loop {
                let (mut dialed, _) = listener.accept().await.unwrap();
                let mut onward = TcpStream::connect(("127.0.0.1", to)).await.unwrap();
                let counted: Rc<Cell<usize>> = Rc::clone(&counted);
                spawn_local(async move {
                    if counted.get() >= most_cuts {
                        let _ended = tokio::io::copy_bidirectional(&mut dialed, &mut onward).await;
                        return;
                    }
                    counted.set(counted.get() + 1);
                    let (mut from_dialed, mut to_dialed) = dialed.split();
                    let (mut from_onward, mut to_onward) = onward.split();
                    let back = tokio::io::copy(&mut from_onward, &mut to_dialed);
                    let there = async {
                        let mut passed = 0;
                        let mut bytes = vec![0; 1_000];
                        while passed < BYTES_TO_CUT {
                            let read = from_dialed.read(&mut bytes).await.unwrap();
                            to_onward.write_all(&bytes[..read]).await.unwrap();
                            passed += read.max(1);
                        }
                    };
                    tokio::select! {
                        _ = back => {}
                        () = there => {}
                    }
                });
            }
        });
        proxy
    }
}

/// Sends 10,000 frames to a process of another node, which sends them back, over 20 connections that are cut.
async fn survives_cuts(to: RankId) {
    let node = TestNode::start();
    let proxy = CuttingProxy::start(&node.at, 20).await;
    let caller = CallingProcess::new(&proxy.at, to, SECRET);
    (0..10_000).for_each(|frame| caller.send(frame));
    let connected = caller.keep_connected();
    caller.end.until_received(10_000).await;
    connected.abort();
    let echo = if to == PORT { &node.port } else { &node.callee };
    let expected: Vec<u64> = (0..10_000).collect();
    assert_eq!(*echo.end.received.borrow(), expected, "each frame once, in order");
    assert_eq!(*caller.end.received.borrow(), expected, "and back");
    assert_eq!((proxy.cuts.get(), caller.opened.get()), (20, 21));
    assert_eq!(echo.admitted.get(), 21);
}

#[tokio::test]
async fn a_session_with_the_process_of_the_port_survives_cut_connections() {
    LocalSet::new().run_until(survives_cuts(PORT)).await;
}

#[tokio::test]
async fn a_session_with_another_process_of_the_node_survives_cut_connections() {
    LocalSet::new().run_until(survives_cuts(CALLEE)).await;
}

#[tokio::test]
async fn many_frames_travel_both_ways_at_once() {
    LocalSet::new()
        .run_until(async {
            let node = TestNode::start();
            let callers: Vec<_> =
                [PORT, CALLEE].map(|to| CallingProcess::new(&node.at, to, SECRET)).into_iter().collect();
            for caller in &callers {
                caller.keep_connected();
                // Far more than the buffers of sockets and of TLS hold.
                (0..50_000).for_each(|frame| caller.send(frame));
            }
            for caller in &callers {
                caller.end.until_received(50_000).await;
                assert_eq!(caller.opened.get(), 1);
            }
        })
        .await;
}

#[tokio::test]
async fn a_connection_for_a_process_that_does_not_exist_is_closed() {
    LocalSet::new()
        .run_until(async {
            let node = TestNode::start();
            let nobody = CallingProcess::new(&node.at, member(9), SECRET);
            let error = broken(nobody.connect().await);
            assert_ne!(error.kind(), std::io::ErrorKind::TimedOut, "it is closed at once");
            // One that has ended, and has left its socket.
            drop(node.directory.listen(SocketName::HandOver(member(9))).unwrap());
            broken(nobody.connect().await);
            assert_eq!((node.port.admitted.get(), node.callee.admitted.get()), (0, 0));
        })
        .await;
}

#[tokio::test]
async fn the_port_is_reached_by_both_versions_of_addresses() {
    LocalSet::new()
        .run_until(async {
            let node = TestNode::start();
            let v6 = Rendezvous { address: "::1".into(), ..node.at.clone() };
            let is_there = TcpListener::bind("[::1]:0").await.is_ok();
            let named = Rendezvous { address: "localhost".into(), ..node.at.clone() };
            for at in [Some(&node.at), is_there.then_some(&v6), Some(&named)].into_iter().flatten() {
                let before = node.callee.admitted.get();
                let caller = CallingProcess::new(at, CALLEE, SECRET);
                let connected = spawn_local({
                    let caller = Rc::clone(&caller);
                    async move { caller.connect().await }
                });
                while node.callee.admitted.get() == before && !connected.is_finished() {
                    tokio::task::yield_now().await;
                }
                assert_eq!(node.callee.admitted.get(), before + 1, "{at:?}");
                connected.abort();
            }
        })
        .await;
}
