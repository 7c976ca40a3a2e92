//! What a process of an application stores objects with, and reads them by.

use std::convert::Infallible;
use std::fmt::Display;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use bytes::BytesMut;
use cohabit_application_core::{CallError, MAX_STORE_WAITS, ObjectId, StoreReply, StoreRequest};
use cohabit_memory::{FreshMemory, MemoryError, MemoryMapping, ObjectWriter, SealedMemory};
use cohabit_types::{ApplicationSecret, RankId};
use futures::future::try_join;
use tokio::net::UnixStream;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, WeakUnboundedSender, unbounded_channel};
use tokio::sync::{OnceCell, Semaphore, oneshot};

use super::frame_stream::{FrameReader, send_frame};
use super::link_table::{LinkTable, MakerReply, MakerResult, ReadProgress, ReadStep};
use crate::transport::{LinkFailure, SocketDirectory, SocketName, StoreHello, introduce};

/// The connection of a process with the store of its node. It is opened when it is first used; when it ends,
/// it is not opened again, since the store then takes what the process had mapped for unused.
#[derive(Debug)]
pub(crate) struct StoreLink {
    connection: Arc<StoreConnection>,
    table: Arc<LinkTable>,
    /// One for each object that is waited for.
    permits: Arc<Semaphore>,
    /// Carries the connection.
    runtime: Handle,
}

/// What it takes to open the connection, and the way to the store once it is open.
#[derive(Debug)]
struct StoreConnection {
    directory: Arc<SocketDirectory>,
    hello: StoreHello,
    requests: OnceCell<UnboundedSender<StoreRequest>>,
}

/// An object that is being stored. The store hears of it if that is given up.
struct Reservation<'a> {
    object: ObjectId,
    table: &'a LinkTable,
    requests: &'a UnboundedSender<StoreRequest>,
    /// The store has it, or has refused it.
    is_settled: bool,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if !self.is_settled {
            self.table.forget_maker(self.object);
            // The connection may have ended, and the store knows then.
            let _told = self.requests.send(StoreRequest::Abandon { object: self.object });
        }
    }
}

impl StoreLink {
    /// The link of the process `own` with the store that the process `store` has; it opens nothing yet. The
    /// runtime that this is called in carries the connection, whoever uses it.
    pub(crate) fn new(
        directory: Arc<SocketDirectory>,
        secret: ApplicationSecret,
        own: RankId,
        store: RankId,
    ) -> StoreLink {
        let hello = StoreHello { secret, from: own, to: store };
        StoreLink {
            connection: Arc::new(StoreConnection { directory, hello, requests: OnceCell::new() }),
            table: Arc::default(),
            permits: Arc::new(Semaphore::new(MAX_STORE_WAITS)),
            runtime: Handle::current(),
        }
    }

    /// Stores an object of this process: waits for room, fills it and seals it. Dropping the future gives it
    /// up.
    ///
    /// # Errors
    /// `StoreFull` if there was no room for too long; `Refused` if there is no store, or the connection ends.
    pub(crate) async fn store(&self, object: ObjectId, writer: ObjectWriter) -> Result<(), CallError> {
        let reserve = StoreRequest::Reserve { object, bytes: writer.bytes() };
        self.store_after(reserve, object, writer).await
    }

    /// Stores an object that another process named and that is lost. It is well if the node has it already.
    ///
    /// # Errors
    /// As [`StoreLink::store`].
    pub(crate) async fn remake(&self, object: ObjectId, writer: ObjectWriter) -> Result<(), CallError> {
        let remake = StoreRequest::Remake { object, bytes: writer.bytes() };
        self.store_after(remake, object, writer).await
    }

    async fn store_after(
        &self,
        request: StoreRequest,
        object: ObjectId,
        writer: ObjectWriter,
    ) -> Result<(), CallError> {
        let requests = self.requests().await.map_err(CallError::Refused)?;
        let permit = self.permits.acquire().await.map_err(|_| CallError::Cancelled)?;
        let bytes = writer.bytes();
        let allocated = self.table.await_reply(object)?;
        let mut reservation =
            Reservation { object, table: &self.table, requests: &requests, is_settled: false };
        let answer = ask(&requests, request, allocated).await;
        // What the store has refused, or has already, is not this one's.
        reservation.is_settled = !matches!(answer, Ok(MakerReply::Allocated(_)));
        let memory = match answer? {
            MakerReply::Allocated(memory) => memory,
            MakerReply::Stored => return Ok(()),
        };
        drop(permit);
        let filled = self.runtime.spawn_blocking(move || fill(memory, &writer)).await;
        let cannot = |error: &dyn Display| {
            CallError::Refused(format!("cannot fill an object of {bytes} bytes: {error}"))
        };
        filled.map_err(|panic| cannot(&panic))?.map_err(|error| cannot(&error))?;
        let stored = self.table.await_reply(object)?;
        match ask(&requests, StoreRequest::Filled { object }, stored).await? {
            MakerReply::Stored => {
                reservation.is_settled = true;
                Ok(())
            }
            MakerReply::Allocated(_) => Err(out_of_order()),
        }
    }

    /// Reads an object, wherever it has to come from.
    #[cfg(test)]
    pub(super) async fn read(&self, object: ObjectId) -> Result<MemoryMapping, CallError> {
        self.read_noting(object, || ()).await
    }

    /// The bytes of an object. It stays mapped while a clone of the mapping lives, and those who read it at
    /// the same time share the mapping. `begin_wait` is called while this is polled, once the object has to
    /// come from another node; what it returns is dropped after the wait.
    ///
    /// # Errors
    /// `ObjectLost` if no store has it any more, or the connection ends; `StoreFull` if there was no room in
    /// memory for too long.
    pub(crate) async fn read_noting<W>(
        &self,
        object: ObjectId,
        begin_wait: impl Fn() -> W,
    ) -> Result<MemoryMapping, CallError> {
        if let Some(mapping) = self.table.mapped(object) {
            return Ok(mapping);
        }
        let requests = self.requests().await.map_err(CallError::ObjectLost)?;
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| CallError::Cancelled)?;
        match self.table.read(object, permit)? {
            ReadStep::Mapped(mapping) => Ok(mapping),
            ReadStep::Wait { mut progress, is_first } => {
                if is_first {
                    // If the connection has ended, the table says so.
                    let _asked = requests.send(StoreRequest::Want { object });
                }
                let mut wait = None;
                loop {
                    match progress.recv().await {
                        Some(ReadProgress::Fetching) => _ = wait.get_or_insert_with(&begin_wait),
                        Some(ReadProgress::Ended(result)) => return result,
                        None => return Err(CallError::ObjectLost(closed())),
                    }
                }
            }
        }
    }

    /// The way to the store, which is opened at the first use.
    ///
    /// # Errors
    /// In words, if there is no store.
    async fn requests(&self) -> Result<UnboundedSender<StoreRequest>, String> {
        if let Some(requests) = self.connection.requests.get() {
            return Ok(requests.clone());
        }
        let (connection, table) = (Arc::clone(&self.connection), Arc::clone(&self.table));
        // A task, so that a caller that gives up leaves no second connection behind.
        let opening = self.runtime.spawn(async move {
            connection.requests.get_or_try_init(|| connection.open(&table)).await.cloned()
        });
        let opened = opening.await.map_err(|_| closed())?;
        opened.map_err(|failure| format!("there is no store of objects on this node: {failure}"))
    }
}

impl StoreConnection {
    /// Opens the connection, and has a task carry it.
    async fn open(&self, table: &Arc<LinkTable>) -> Result<UnboundedSender<StoreRequest>, LinkFailure> {
        let stream = connect(&self.directory, &self.hello).await?;
        let (requests, received) = unbounded_channel();
        let (table, weak) = (Arc::clone(table), requests.downgrade());
        tokio::spawn(async move {
            let failure = carry(&stream, received, &table, &weak).await;
            table.fail(&format!("the store of objects of this node: {failure}"));
        });
        Ok(requests)
    }
}

/// Sends a request of a maker, and waits for the reply.
async fn ask(
    requests: &UnboundedSender<StoreRequest>,
    request: StoreRequest,
    reply: oneshot::Receiver<MakerResult>,
) -> MakerResult {
    // If the connection has ended, the table says so.
    let _asked = requests.send(request);
    reply.await.map_err(|_| CallError::Refused(closed()))?
}

async fn connect(directory: &SocketDirectory, hello: &StoreHello) -> Result<UnixStream, LinkFailure> {
    let mut stream = directory.connect(SocketName::Store).await?;
    introduce(&mut stream, hello).await?;
    Ok(stream)
}

/// Carries requests and replies until the connection ends: returns why.
async fn carry(
    stream: &UnixStream,
    mut requests: UnboundedReceiver<StoreRequest>,
    table: &Arc<LinkTable>,
    sender: &WeakUnboundedSender<StoreRequest>,
) -> LinkFailure {
    let read = async {
        let mut frames = FrameReader::new(stream, BytesMut::new());
        loop {
            let reply: StoreReply = frames.next().await?;
            let descriptor = reply.has_descriptor().then(|| frames.descriptor()).transpose()?;
            let requests = sender.upgrade().ok_or(LinkFailure::Closed)?;
            table.receive(reply, descriptor, &requests)?;
        }
    };
    let write = async {
        while let Some(request) = requests.recv().await {
            send_frame(stream, &request, None).await?;
        }
        Err(LinkFailure::Closed)
    };
    let ended: Result<(Infallible, Infallible), LinkFailure> = try_join(read, write).await;
    match ended {
        Err(failure) => failure,
        Ok((never, _)) => match never {},
    }
}

/// Writes the object and seals it. This process keeps nothing of it.
fn fill(memory: OwnedFd, writer: &ObjectWriter) -> Result<(), MemoryError> {
    let memory = FreshMemory::from_fd(memory, writer.bytes())?;
    let _sealed: SealedMemory = writer.write(memory)?;
    Ok(())
}

fn closed() -> String {
    "the connection with the store of objects of this node has ended".into()
}

fn out_of_order() -> CallError {
    CallError::Refused("the store of objects of this node answers out of order".into())
}
