//! A store with its directories, and values to store.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cohabit_application_core::{CallError, FromStore, ObjectId, StoreFigures, ToStore};
use cohabit_memory::{Buffer, MemoryMapping, ObjectWriter, read_object};
use cohabit_types::{ApplicationSecret, JobId, RankId};
use futures::FutureExt;
use tempfile::TempDir;
use tokio::net::UnixStream;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::yield_now;

use super::super::node_store::NodeStore;
use super::super::settings::{ROOM_PATIENCE, StoreOutlets, StoreSettings};
use super::super::store_link::StoreLink;
use super::super::transfer::{NodeConnector, OtherStore};
use crate::transport::{HelloCheck, SocketDirectory, SocketName, StoreHello, introduce};

pub(super) const MIB: u64 = 1 << 20;
pub(super) const SECRET: ApplicationSecret = ApplicationSecret([7; 32]);
/// The process that has the store.
pub(super) const ROOT: RankId = member(1);
pub(super) const MAKER: RankId = member(2);
pub(super) const READER: RankId = member(3);

pub(super) const fn member(job: u64) -> RankId {
    JobId::new(job).attempt(1).rank(0)
}

/// The object of a maker with this number.
pub(super) const fn object(number: u64) -> ObjectId {
    ObjectId { maker: MAKER, number }
}

/// Other stores cannot be reached.
pub(super) fn nobody() -> NodeConnector {
    let nobody = || async { Err::<Box<dyn OtherStore>, _>(io::ErrorKind::HostUnreachable.into()) };
    Arc::new(move |_| nobody().boxed())
}

/// A store in a directory of its own.
pub(super) struct TestStore {
    pub(super) store: Arc<NodeStore>,
    pub(super) directory: Arc<SocketDirectory>,
    pub(super) folder: TempDir,
}

impl TestStore {
    pub(super) fn with_budget(budget: u64) -> TestStore {
        TestStore::new(budget, ROOM_PATIENCE)
    }

    /// The only node: what is not here is lost.
    pub(super) fn new(budget: u64, patience: Duration) -> TestStore {
        let (test, mut words) = TestStore::of_node(budget, patience, nobody());
        let store = Arc::downgrade(&test.store);
        tokio::spawn(async move {
            while let Some(word) = words.recv().await {
                let FromStore::Wants { object } = word else { panic!("{word:?}") };
                let text = format!("object {object}: the object is not on this node");
                let lost = ToStore::Lost { object, error: CallError::ObjectLost(text) };
                store.upgrade().into_iter().for_each(|store| store.obey(lost.clone()));
            }
        });
        test
    }

    /// One of several nodes, and what it says to the coordinator.
    pub(super) fn of_node(
        budget: u64,
        patience: Duration,
        connector: NodeConnector,
    ) -> (TestStore, UnboundedReceiver<FromStore>) {
        let folder = tempfile::tempdir().unwrap();
        let directory = Arc::new(SocketDirectory::open(folder.path()).unwrap());
        let (told, words) = unbounded_channel();
        let settings = StoreSettings { budget, spill_directory: folder.path().to_owned(), patience };
        let store = TestStore::start(&directory, settings, StoreOutlets { told, connector });
        (TestStore { store: Arc::new(store), directory, folder }, words)
    }

    pub(super) fn start(
        directory: &SocketDirectory,
        settings: StoreSettings,
        outlets: StoreOutlets,
    ) -> NodeStore {
        let check = HelloCheck { secret: SECRET, own: ROOT };
        NodeStore::start(directory, check, settings, outlets).unwrap()
    }

    pub(super) fn link(&self, own: RankId) -> StoreLink {
        StoreLink::new(Arc::clone(&self.directory), SECRET, own, ROOT)
    }

    /// A connection of a process that says what it wants.
    pub(super) async fn connect(&self, secret: ApplicationSecret, from: RankId) -> UnixStream {
        connect(&self.directory, secret, from).await
    }

    /// Bytes in memory and on disk.
    pub(super) async fn bytes(&self) -> (u64, u64) {
        let figures = self.store.figures().await.unwrap();
        (figures.memory, figures.disk)
    }

    /// Waits until the figures are as they should be.
    pub(super) async fn until(&self, holds: impl Fn(&StoreFigures) -> bool) -> StoreFigures {
        loop {
            let figures = self.store.figures().await.unwrap();
            if holds(&figures) {
                return figures;
            }
            yield_now().await;
        }
    }
}

pub(super) async fn connect(
    directory: &SocketDirectory,
    secret: ApplicationSecret,
    from: RankId,
) -> UnixStream {
    let mut stream = directory.connect(SocketName::Store).await.unwrap();
    introduce(&mut stream, &StoreHello { secret, from, to: ROOT }).await.unwrap();
    stream
}

/// Bytes of which no two pages are alike, nor those of two seeds.
pub(super) fn pattern(seed: u64, length: u64) -> Buffer<u8> {
    let page: Vec<u8> = (0..4096u64).map(|at| (at.wrapping_mul(2_654_435_761) >> 16) as u8).collect();
    let mut bytes = vec![0; length as usize];
    for (number, part) in (0u64..).zip(bytes.chunks_mut(page.len())) {
        part.copy_from_slice(&page[..part.len()]);
        let stamp = (seed << 32 | number).to_le_bytes();
        let stamped = part.len().min(stamp.len());
        part[..stamped].copy_from_slice(&stamp[..stamped]);
    }
    bytes.into()
}

/// A writer of an object with exactly so many bytes, whose content differs by the seed.
pub(super) fn writer_of(seed: u64, bytes: u64) -> ObjectWriter {
    let overhead = ObjectWriter::new(&pattern(seed, 0)).unwrap().bytes();
    let writer = ObjectWriter::new(&pattern(seed, bytes - overhead)).unwrap();
    assert_eq!(writer.bytes(), bytes);
    writer
}

/// The content of an object that `writer_of` wrote.
pub(super) fn content(mapping: &MemoryMapping) -> Buffer<u8> {
    read_object(mapping).unwrap()
}

pub(super) fn is_intact(seed: u64, mapping: &MemoryMapping) -> bool {
    let content = content(mapping);
    *content == *pattern(seed, content.len() as u64)
}

/// The text of an error for a full store.
pub(super) fn full(result: Result<(), CallError>) -> String {
    match result {
        Err(CallError::StoreFull(text)) => text,
        other => panic!("it is not full: {other:?}"),
    }
}

/// What the descriptors of this process refer to, as far as it begins so.
pub(super) fn open_files(prefix: &str) -> Vec<String> {
    let files = std::fs::read_dir(Path::new("/proc/self/fd")).unwrap();
    let targets = files.filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok());
    targets.map(|it| it.to_string_lossy().into_owned()).filter(|it| it.starts_with(prefix)).collect()
}
