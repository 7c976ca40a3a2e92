//! Stores of several nodes that reach each other over TCP on this machine; the test is the coordinator.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::BytesMut;
use cohabit_application_core::{
    CallError, FetchFailure, FromStore, NodeNumber, ObjectId, StoreRequest, ToStore,
};
use cohabit_memory::MemoryMapping;
use futures::FutureExt;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::mpsc::UnboundedReceiver;

use super::super::frame_stream::send_frame;
use super::super::settings::ROOM_PATIENCE;
use super::super::store_link::StoreLink;
use super::super::transfer::{NodeConnector, OpenedConnection, OtherStore};
use super::kit::{READER, SECRET, TestStore};

/// Where the store of each node listens.
#[derive(Debug, Clone, Default)]
pub(super) struct Nodes(Arc<Mutex<BTreeMap<NodeNumber, SocketAddr>>>);

/// A node with what its store says to the coordinator.
pub(super) struct TestNode {
    test: TestStore,
    words: UnboundedReceiver<FromStore>,
    reader: Option<UnixStream>,
}

impl Deref for TestNode {
    type Target = TestStore;

    fn deref(&self) -> &TestStore {
        &self.test
    }
}

impl Nodes {
    /// A node whose store has so much memory.
    pub(super) async fn start(&self, number: u32, budget: u64) -> TestNode {
        self.start_with(number, budget, ROOM_PATIENCE).await
    }

    pub(super) async fn start_with(&self, number: u32, budget: u64, patience: Duration) -> TestNode {
        let (test, words) = TestStore::of_node(budget, patience, self.connector());
        let listener = self.listen(number).await;
        let store = Arc::downgrade(&test.store);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Some(store) = store.upgrade() else { return };
                let stream = stream.into_std().unwrap();
                let opening = async move {
                    let stream = Box::new(TcpStream::from_std(stream)?) as Box<dyn OtherStore>;
                    Ok(OpenedConnection { stream, received: BytesMut::new() })
                };
                store.serve_network(opening.boxed());
            }
        });
        TestNode { test, words, reader: None }
    }

    /// Listens for a node.
    pub(super) async fn listen(&self, number: u32) -> TcpListener {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        self.0.lock().unwrap().insert(NodeNumber(number), listener.local_addr().unwrap());
        listener
    }

    pub(super) async fn connect(&self, number: u32) -> io::Result<TcpStream> {
        let address = self.0.lock().unwrap().get(&NodeNumber(number)).copied();
        TcpStream::connect(address.ok_or(io::ErrorKind::HostUnreachable)?).await
    }

    pub(super) fn address(&self, number: u32) -> SocketAddr {
        self.0.lock().unwrap()[&NodeNumber(number)]
    }

    fn connector(&self) -> NodeConnector {
        let nodes = self.clone();
        Arc::new(move |NodeNumber(number)| {
            let nodes = nodes.clone();
            async move { Ok(Box::new(nodes.connect(number).await?) as Box<dyn OtherStore>) }.boxed()
        })
    }
}

/// Why a fetch failed, in words.
pub(super) fn failed(result: Result<(), FetchFailure>) -> String {
    match result {
        Err(FetchFailure::Failed(text)) => text,
        other @ (Ok(()) | Err(FetchFailure::Missing)) => panic!("{other:?}"),
    }
}

impl TestNode {
    pub(super) fn of((test, words): (TestStore, UnboundedReceiver<FromStore>)) -> TestNode {
        TestNode { test, words, reader: None }
    }

    /// Has a process want an object, and its store fetch it.
    pub(super) async fn fetch_wanted(
        &mut self,
        object: ObjectId,
        bytes: u64,
        from: u32,
    ) -> Result<(), FetchFailure> {
        let stream = self.test.connect(SECRET, READER).await;
        send_frame(&stream, &StoreRequest::Want { object }, None).await.unwrap();
        self.wants(object).await;
        let fetched = self.fetch(object, bytes, from).await;
        // As long as it is connected, it wants the object.
        self.reader = Some(stream);
        fetched
    }

    /// The next that its store says.
    pub(super) async fn said(&mut self) -> FromStore {
        self.words.recv().await.unwrap()
    }

    /// It has said nothing more.
    pub(super) fn said_nothing(&mut self) -> bool {
        self.words.try_recv().is_err()
    }

    pub(super) async fn wants(&mut self, object: ObjectId) {
        assert_eq!(self.said().await, FromStore::Wants { object });
    }

    /// Tells its store to fetch an object, and waits until that has ended.
    pub(super) async fn fetch(
        &mut self,
        object: ObjectId,
        bytes: u64,
        from: u32,
    ) -> Result<(), FetchFailure> {
        self.store.obey(ToStore::Fetch { object, bytes, from: NodeNumber(from) });
        let said = self.said().await;
        let FromStore::Fetched { object: fetched, result } = said else { panic!("{said:?}") };
        assert_eq!(fetched, object);
        result
    }

    /// Reads an object that is on another node alone.
    pub(super) async fn read_from(
        &mut self,
        link: &StoreLink,
        object: ObjectId,
        bytes: u64,
        from: u32,
    ) -> Result<MemoryMapping, CallError> {
        let fetching = async {
            self.wants(object).await;
            self.fetch(object, bytes, from).await.unwrap();
        };
        futures::join!(link.read(object), fetching).0
    }
}
