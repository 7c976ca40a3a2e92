//! Who waits for the store in this process, and what of it is mapped.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cohabit_application_core::{CallError, ObjectId, StoreReply, StoreRequest};
use cohabit_memory::{MemoryError, MemoryMapping, SealedMemory, WeakMapping};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::transport::LinkFailure;

/// What a maker waits for.
#[derive(Debug)]
pub(super) enum MakerReply {
    /// Memory to fill.
    Allocated(OwnedFd),
    /// The store has the object.
    Stored,
}

/// Why an object was not stored or read.
#[derive(Debug, Clone)]
pub(super) enum StoreFailure {
    /// The connection has ended: why. The next store can be asked.
    Ended(String),
    Call(CallError),
}

pub(super) type MakerResult = Result<MakerReply, StoreFailure>;

/// What a reader waits for.
pub(super) type ReaderResult = Result<MemoryMapping, StoreFailure>;

/// What a reader is told.
#[derive(Debug)]
pub(super) enum ReadProgress {
    /// The object has to come from another node.
    Fetching,
    /// It is mapped, or this store will not give it.
    Ended(ReaderResult),
}

/// What a reader does next.
pub(super) enum ReadStep {
    /// The object is mapped.
    Mapped(MemoryMapping),
    /// It is on its way. `is_first` says that the store has not been asked yet.
    Wait { progress: UnboundedReceiver<ReadProgress>, is_first: bool },
}

/// Shared by the connection and those that use it. No mapping is dropped under its lock, since that takes the
/// lock.
#[derive(Debug, Default)]
pub(super) struct LinkTable(Mutex<LinkState>);

#[derive(Debug, Default)]
struct LinkState {
    makers: HashMap<ObjectId, oneshot::Sender<MakerResult>>,
    readers: HashMap<ObjectId, WaitingReaders>,
    mapped: HashMap<ObjectId, MappedObject>,
    mappings: u64,
    /// Why the connection has ended.
    failure: Option<String>,
}

/// Those that wait for one object.
#[derive(Debug)]
struct WaitingReaders {
    readers: Vec<UnboundedSender<ReadProgress>>,
    /// It has to come from another node.
    is_fetching: bool,
    /// Kept until the answer, whether somebody still waits for it or not.
    _permit: OwnedSemaphorePermit,
}

#[derive(Debug)]
struct MappedObject {
    number: u64,
    mapping: WeakMapping,
}

/// Tells the store when a mapping has ended.
struct MappingEnd {
    object: ObjectId,
    /// An object may be mapped again before the end of an earlier mapping is noticed.
    number: u64,
    table: Arc<LinkTable>,
    requests: UnboundedSender<StoreRequest>,
}

impl Drop for MappingEnd {
    fn drop(&mut self) {
        let mut state = self.table.state();
        if state.mapped.get(&self.object).is_some_and(|it| it.number == self.number) {
            state.mapped.remove(&self.object);
        }
        drop(state);
        // The connection may have ended, and the store knows then.
        let _told = self.requests.send(StoreRequest::Unmapped { object: self.object });
    }
}

impl LinkTable {
    /// The object, if it is mapped.
    pub(super) fn mapped(&self, object: ObjectId) -> Option<MemoryMapping> {
        self.state().mapped.get(&object)?.mapping.upgrade()
    }

    /// Whether the connection has ended.
    pub(super) fn has_failed(&self) -> bool {
        self.state().failure.is_some()
    }

    /// Waits for an object, with a permit in case that the store has to be asked.
    ///
    /// # Errors
    /// If the connection has ended.
    pub(super) fn read(
        &self,
        object: ObjectId,
        permit: OwnedSemaphorePermit,
    ) -> Result<ReadStep, StoreFailure> {
        let mut state = self.state();
        if let Some(mapping) = state.mapped.get(&object).and_then(|it| it.mapping.upgrade()) {
            return Ok(ReadStep::Mapped(mapping));
        }
        if let Some(failure) = &state.failure {
            return Err(StoreFailure::Ended(failure.clone()));
        }
        let (sender, progress) = unbounded_channel();
        let is_first = !state.readers.contains_key(&object);
        let waiting = WaitingReaders { readers: Vec::new(), is_fetching: false, _permit: permit };
        let waiting = state.readers.entry(object).or_insert(waiting);
        if waiting.is_fetching {
            // The receiver is here.
            let _told = sender.send(ReadProgress::Fetching);
        }
        waiting.readers.push(sender);
        Ok(ReadStep::Wait { progress, is_first })
    }

    /// A maker waits for the next reply to it.
    ///
    /// # Errors
    /// If the connection has ended, or the object is being stored already.
    pub(super) fn await_reply(
        &self,
        object: ObjectId,
    ) -> Result<oneshot::Receiver<MakerResult>, StoreFailure> {
        let mut state = self.state();
        if let Some(failure) = &state.failure {
            return Err(StoreFailure::Ended(failure.clone()));
        }
        if state.makers.contains_key(&object) {
            let error = CallError::Refused(format!("object {object} is being stored already"));
            return Err(StoreFailure::Call(error));
        }
        let (sender, receiver) = oneshot::channel();
        state.makers.insert(object, sender);
        Ok(receiver)
    }

    /// A maker does not wait any more.
    pub(super) fn forget_maker(&self, object: ObjectId) {
        self.state().makers.remove(&object);
    }

    /// A reply has come.
    ///
    /// # Errors
    /// If the store broke the protocol.
    pub(super) fn receive(
        self: &Arc<LinkTable>,
        reply: StoreReply,
        descriptor: Option<OwnedFd>,
        requests: &UnboundedSender<StoreRequest>,
    ) -> Result<(), LinkFailure> {
        match (reply, descriptor) {
            (StoreReply::Allocated { object }, Some(memory)) => {
                self.tell_maker(object, MakerReply::Allocated(memory));
            }
            (StoreReply::Stored { object }, None) => self.tell_maker(object, MakerReply::Stored),
            (StoreReply::HandOver { object, bytes }, Some(memory)) => {
                self.map(object, SealedMemory::from_fd(memory, bytes), requests);
            }
            (StoreReply::Fetching { object }, None) => self.note_fetching(object),
            (StoreReply::Refused { object, error }, None) => match self.take_maker(object) {
                // It may not wait any more, as below.
                Some(maker) => drop(maker.send(Err(StoreFailure::Call(error)))),
                None => self.tell_readers(object, &Err(StoreFailure::Call(error))),
            },
            (reply, _) => {
                return Err(LinkFailure::Protocol(format!("{reply:?} with a descriptor or without")));
            }
        }
        Ok(())
    }

    /// The connection has ended: nobody gets anything from this store any more.
    pub(super) fn fail(&self, text: &str) {
        let ended = StoreFailure::Ended(text.to_owned());
        let mut state = self.state();
        state.failure = Some(text.to_owned());
        let (makers, readers) = (std::mem::take(&mut state.makers), std::mem::take(&mut state.readers));
        drop(state);
        for maker in makers.into_values() {
            // It may not wait any more, as below.
            let _told = maker.send(Err(ended.clone()));
        }
        for reader in readers.into_values().flat_map(|it| it.readers) {
            let _told = reader.send(ReadProgress::Ended(Err(ended.clone())));
        }
    }

    fn map(
        self: &Arc<LinkTable>,
        object: ObjectId,
        memory: Result<SealedMemory, MemoryError>,
        requests: &UnboundedSender<StoreRequest>,
    ) {
        let number = {
            let mut state = self.state();
            state.mappings += 1;
            state.mappings
        };
        let end = MappingEnd { object, number, table: Arc::clone(self), requests: requests.clone() };
        let mapping = memory.and_then(|memory| memory.map_with(end));
        if let Ok(mapping) = &mapping {
            let mapped = MappedObject { number, mapping: mapping.downgrade() };
            self.state().mapped.insert(object, mapped);
        }
        let lost = |error| StoreFailure::Call(CallError::ObjectLost(format!("object {object}: {error}")));
        let result = mapping.map_err(lost);
        self.tell_readers(object, &result);
    }

    fn tell_maker(&self, object: ObjectId, reply: MakerReply) {
        let maker = self.take_maker(object);
        // A maker that does not wait any more has said so.
        let _told = maker.map(|maker| maker.send(Ok(reply)));
    }

    fn take_maker(&self, object: ObjectId) -> Option<oneshot::Sender<MakerResult>> {
        self.state().makers.remove(&object)
    }

    fn tell_readers(&self, object: ObjectId, result: &ReaderResult) {
        let waiting = self.state().readers.remove(&object);
        for reader in waiting.into_iter().flat_map(|it| it.readers) {
            // It may not wait any more.
            let _told = reader.send(ReadProgress::Ended(result.clone()));
        }
    }

    fn note_fetching(&self, object: ObjectId) {
        let mut state = self.state();
        let Some(waiting) = state.readers.get_mut(&object) else { return };
        waiting.is_fetching = true;
        for reader in &waiting.readers {
            // As above.
            let _told = reader.send(ReadProgress::Fetching);
        }
    }

    fn state(&self) -> MutexGuard<'_, LinkState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
