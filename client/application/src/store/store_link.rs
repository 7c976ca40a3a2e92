//! What a process of an application stores objects with, and reads them by.

use std::convert::Infallible;
use std::fmt::Display;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use cohabit_application_core::{CallError, MAX_STORE_WAITS, ObjectId, StoreReply, StoreRequest};
use cohabit_memory::{FreshMemory, MemoryError, MemoryMapping, ObjectWriter, SealedMemory};
use cohabit_types::{ApplicationSecret, RankId};
use futures::future::try_join;
use tokio::net::UnixStream;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, WeakUnboundedSender, unbounded_channel};
use tokio::sync::{OnceCell, Semaphore, oneshot};
use tokio::time::sleep;

use super::frame_stream::{FrameReader, send_frame};
use super::link_table::{LinkTable, MakerReply, MakerResult, ReadProgress, ReadStep, StoreFailure};
use crate::transport::{LinkFailure, SocketDirectory, SocketName, StoreHello, introduce};

/// How long the next store of the node, which is started again, is waited for.
const NEXT_STORE: Duration = Duration::from_secs(30);

/// Pause before the next store of the node is sought again.
const PAUSE: Duration = Duration::from_millis(100);

/// The connection of a process with the store of its node. It is opened when it is first used. When it ends,
/// the store has ended, and the next use opens one with the store that follows.
#[derive(Debug)]
pub(crate) struct StoreLink {
    directory: Arc<SocketDirectory>,
    hello: StoreHello,
    session: Mutex<Arc<StoreSession>>,
    /// One for each object that is waited for.
    permits: Arc<Semaphore>,
    /// For so long the next store of the node is waited for when one has ended.
    patience: Duration,
    /// Carries the connections.
    runtime: Handle,
}

/// What goes on with one store.
#[derive(Debug, Default)]
struct StoreSession {
    /// What went on with the store before. Its objects stay mapped, and this one may be about to start.
    before: Option<Arc<StoreSession>>,
    /// The way to it, once the connection is open.
    requests: OnceCell<UnboundedSender<StoreRequest>>,
    table: Arc<LinkTable>,
}

/// How long somebody goes on with the stores that follow one that has ended.
#[derive(Default)]
struct StorePatience {
    /// When the first one ended.
    since: Option<Instant>,
}

impl StorePatience {
    /// A store has ended: whether that has gone on for longer than this.
    fn is_over(&mut self, patience: Duration) -> bool {
        self.since.get_or_insert_with(Instant::now).elapsed() > patience
    }
}

/// Why there is no connection with a store.
enum NoSession {
    /// Nobody listens: the next store may follow.
    Absent(String),
    Refused(String),
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
            directory,
            hello,
            session: Mutex::default(),
            permits: Arc::new(Semaphore::new(MAX_STORE_WAITS)),
            patience: NEXT_STORE,
            runtime: Handle::current(),
        }
    }

    #[cfg(test)]
    pub(super) fn with_patience(self, patience: Duration) -> StoreLink {
        StoreLink { patience, ..self }
    }

    /// Stores an object of this process: waits for room, fills it and seals it. If the store ends meanwhile,
    /// begins again with the next one. Dropping the future gives it up.
    ///
    /// # Errors
    /// `StoreFull` if there was no room for too long; `Refused` if there is no store, or none follows one
    /// that has ended.
    pub(crate) async fn store(&self, object: ObjectId, writer: ObjectWriter) -> Result<(), CallError> {
        let reserve = StoreRequest::Reserve { object, bytes: writer.bytes() };
        self.store_with(reserve, object, writer).await
    }

    /// Stores an object that another process named and that is lost. It is well if the node has it already.
    ///
    /// # Errors
    /// As [`StoreLink::store`].
    pub(crate) async fn remake(&self, object: ObjectId, writer: ObjectWriter) -> Result<(), CallError> {
        let remake = StoreRequest::Remake { object, bytes: writer.bytes() };
        self.store_with(remake, object, writer).await
    }

    async fn store_with(
        &self,
        request: StoreRequest,
        object: ObjectId,
        writer: ObjectWriter,
    ) -> Result<(), CallError> {
        let writer = Arc::new(writer);
        let mut patience = StorePatience::default();
        loop {
            let (session, requests) = self.session().await.map_err(CallError::Refused)?;
            match self.store_once((request, object), &writer, &session.table, &requests).await {
                Ok(()) => return Ok(()),
                Err(StoreFailure::Call(error)) => return Err(error),
                Err(StoreFailure::Ended(text)) if patience.is_over(self.patience) => {
                    return Err(CallError::Refused(text));
                }
                Err(StoreFailure::Ended(_)) => self.pause().await,
            }
        }
    }

    /// Stores an object in one store.
    async fn store_once(
        &self,
        (request, object): (StoreRequest, ObjectId),
        writer: &Arc<ObjectWriter>,
        table: &LinkTable,
        requests: &UnboundedSender<StoreRequest>,
    ) -> Result<(), StoreFailure> {
        let cancelled = |_| StoreFailure::Call(CallError::Cancelled);
        let permit = self.permits.acquire().await.map_err(cancelled)?;
        let allocated = table.await_reply(object)?;
        let mut reservation = Reservation { object, table, requests, is_settled: false };
        let answer = ask(requests, request, allocated).await;
        // What the store has refused, or has already, is not this one's.
        reservation.is_settled = !matches!(answer, Ok(MakerReply::Allocated(_)));
        let memory = match answer? {
            MakerReply::Allocated(memory) => memory,
            MakerReply::Stored => return Ok(()),
        };
        drop(permit);
        let filling = Arc::clone(writer);
        let filled = self.runtime.spawn_blocking(move || fill(memory, &filling)).await;
        let cannot = |error: &dyn Display| {
            let text = format!("cannot fill an object of {} bytes: {error}", writer.bytes());
            StoreFailure::Call(CallError::Refused(text))
        };
        filled.map_err(|panic| cannot(&panic))?.map_err(|error| cannot(&error))?;
        let stored = table.await_reply(object)?;
        match ask(requests, StoreRequest::Filled { object }, stored).await? {
            MakerReply::Stored => {
                reservation.is_settled = true;
                Ok(())
            }
            MakerReply::Allocated(_) => Err(StoreFailure::Call(out_of_order())),
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
    /// `ObjectLost` if no store has it any more, or none follows one that has ended; `StoreFull` if there was
    /// no room in memory for too long.
    pub(crate) async fn read_noting<W>(
        &self,
        object: ObjectId,
        begin_wait: impl Fn() -> W,
    ) -> Result<MemoryMapping, CallError> {
        if let Some(mapping) = self.current().mapped(object) {
            return Ok(mapping);
        }
        let mut patience = StorePatience::default();
        loop {
            let (session, requests) = self.session().await.map_err(CallError::ObjectLost)?;
            match self.read_once(object, &session.table, &requests, &begin_wait).await {
                Ok(mapping) => return Ok(mapping),
                Err(StoreFailure::Call(error)) => return Err(error),
                Err(StoreFailure::Ended(text)) if patience.is_over(self.patience) => {
                    return Err(CallError::ObjectLost(text));
                }
                Err(StoreFailure::Ended(_)) => self.pause().await,
            }
        }
    }

    /// Reads an object of one store.
    async fn read_once<W>(
        &self,
        object: ObjectId,
        table: &LinkTable,
        requests: &UnboundedSender<StoreRequest>,
        begin_wait: &impl Fn() -> W,
    ) -> Result<MemoryMapping, StoreFailure> {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let permit = permit.map_err(|_| StoreFailure::Call(CallError::Cancelled))?;
        match table.read(object, permit)? {
            ReadStep::Mapped(mapping) => Ok(mapping),
            ReadStep::Wait { mut progress, is_first } => {
                if is_first {
                    // If the connection has ended, the table says so.
                    let _asked = requests.send(StoreRequest::Want { object });
                }
                let mut wait = None;
                loop {
                    match progress.recv().await {
                        Some(ReadProgress::Fetching) => _ = wait.get_or_insert_with(begin_wait),
                        Some(ReadProgress::Ended(result)) => return result,
                        None => return Err(StoreFailure::Ended(closed())),
                    }
                }
            }
        }
    }

    /// What goes on with the store, and the way to it, which is opened at the first use. If a store has
    /// ended, waits for the next one.
    ///
    /// # Errors
    /// In words, if there is no store.
    async fn session(&self) -> Result<(Arc<StoreSession>, UnboundedSender<StoreRequest>), String> {
        let begun = Instant::now();
        loop {
            match self.open_session().await {
                Ok(opened) => return Ok(opened),
                Err(NoSession::Absent(_)) if begun.elapsed() <= self.patience => self.pause().await,
                Err(NoSession::Absent(text) | NoSession::Refused(text)) => return Err(text),
            }
        }
    }

    /// Whoever waits may have no timer of its own.
    async fn pause(&self) {
        // It ends early with the runtime, and so does everything else.
        let _paused = self.runtime.spawn(async { sleep(PAUSE).await }).await;
    }

    /// What goes on with the store that was found last.
    fn current(&self) -> Arc<StoreSession> {
        Arc::clone(&self.session.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn open_session(&self) -> Result<(Arc<StoreSession>, UnboundedSender<StoreRequest>), NoSession> {
        let session = {
            let mut current = self.session.lock().unwrap_or_else(PoisonError::into_inner);
            if current.table.has_failed() {
                let before = Some(Arc::clone(&current));
                *current = Arc::new(StoreSession { before, ..StoreSession::default() });
            }
            Arc::clone(&current)
        };
        if let Some(requests) = session.requests.get() {
            let requests = requests.clone();
            return Ok((session, requests));
        }
        let (opened, directory, hello) =
            (Arc::clone(&session), Arc::clone(&self.directory), self.hello.clone());
        // A task, so that a caller that gives up leaves no second connection behind.
        let opening = self.runtime.spawn(async move {
            opened.requests.get_or_try_init(|| opened.open(&directory, &hello)).await.cloned()
        });
        let opened = opening.await.map_err(|_| NoSession::Refused(closed()))?;
        let none = |failure: &LinkFailure| format!("there is no store of objects on this node: {failure}");
        match opened {
            Ok(requests) => Ok((session, requests)),
            Err(failure @ LinkFailure::Broken(_)) if session.before.is_some() => {
                Err(NoSession::Absent(none(&failure)))
            }
            Err(failure) => Err(NoSession::Refused(none(&failure))),
        }
    }
}

impl StoreSession {
    /// The object, if it is mapped.
    fn mapped(&self, object: ObjectId) -> Option<MemoryMapping> {
        self.table.mapped(object).or_else(|| self.before.as_ref()?.mapped(object))
    }

    /// Opens the connection, and has a task carry it.
    async fn open(
        &self,
        directory: &SocketDirectory,
        hello: &StoreHello,
    ) -> Result<UnboundedSender<StoreRequest>, LinkFailure> {
        let stream = connect(directory, hello).await?;
        let (requests, received) = unbounded_channel();
        let (table, weak) = (Arc::clone(&self.table), requests.downgrade());
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
    reply.await.map_err(|_| StoreFailure::Ended(closed()))?
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
