//! Carries out the effects of the store's core: memory, spill files, timers, replies.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::panic::resume_unwind;
use std::rc::Rc;

use cohabit_application_core::{
    FromStore, MAX_STORE_WAITS, NodeNumber, ObjectId, ObjectKind, ObjectStore, ObjectStoreEffect,
    StoreFigures, StoreReply, StoreRequest, TransferResult,
};
use cohabit_memory::{FreshMemory, MemoryError, SpillFile};
use cohabit_types::RankId;
use tokio::sync::{RwLock, Semaphore};
use tokio::task::{AbortHandle, JoinError, spawn_blocking, spawn_local};
use tokio::time::sleep;

use super::object_memory::{AllocationNumber, Discarded, ObjectMemories, SharedMemory};
use super::refusal::{RefusedRequest, bounded};
use super::reply_queue::ReplyQueue;
use super::settings::{StoreOutlets, StoreSettings};
use super::transfer::{ServingPlaces, TransferThreads};
use crate::transport::LinkFailure;

/// Copies between memory and disk at the same time: more of them do not make a disk faster.
const TRANSFERS: usize = 2;

/// The store, on its thread.
pub(super) struct StoreServer {
    settings: StoreSettings,
    pub(super) outlets: StoreOutlets,
    /// For nodes that fetch from here.
    pub(super) serving: ServingPlaces,
    pub(super) state: RefCell<NodeStoreState>,
    transfers: Semaphore,
    pub(super) transfer_threads: TransferThreads,
    /// Held for reading while memory is given back, so that no allocation overtakes it.
    discards: RwLock<()>,
}

pub(super) struct NodeStoreState {
    pub(super) core: ObjectStore,
    pub(super) memories: ObjectMemories,
    /// The nodes that objects are fetched from.
    pub(super) sources: BTreeMap<ObjectId, NodeNumber>,
    members: BTreeMap<RankId, ConnectedMember>,
    /// What is held of that which ended processes have stored, as long as their connections have not ended:
    /// what they said last may not have been read.
    forgotten: BTreeMap<RankId, BTreeSet<ObjectId>>,
    /// Why the last spill, allocation or return from disk failed.
    failure: Option<String>,
}

/// A process with an open connection.
struct ConnectedMember {
    replies: Rc<ReplyQueue>,
    /// Objects that it waits for, with what ends the wait.
    waits: BTreeMap<ObjectId, AbortHandle>,
}

type Effects = Vec<ObjectStoreEffect>;

impl StoreServer {
    pub(super) fn new(settings: StoreSettings, outlets: StoreOutlets, most_objects: usize) -> StoreServer {
        let state = NodeStoreState {
            core: ObjectStore::new(settings.budget, most_objects),
            memories: ObjectMemories::default(),
            sources: BTreeMap::new(),
            members: BTreeMap::new(),
            forgotten: BTreeMap::new(),
            failure: None,
        };
        StoreServer {
            settings,
            outlets,
            serving: ServingPlaces::default(),
            state: RefCell::new(state),
            transfers: Semaphore::new(TRANSFERS),
            transfer_threads: TransferThreads::default(),
            discards: RwLock::new(()),
        }
    }

    pub(super) fn figures(&self) -> StoreFigures {
        self.state.borrow().core.figures()
    }

    /// A process has connected. None if it is connected already.
    pub(super) fn join(&self, member: RankId) -> Option<Rc<ReplyQueue>> {
        let mut state = self.state.borrow_mut();
        if state.members.contains_key(&member) {
            return None;
        }
        let replies = Rc::<ReplyQueue>::default();
        state
            .members
            .insert(member, ConnectedMember { replies: Rc::clone(&replies), waits: BTreeMap::new() });
        Some(replies)
    }

    /// The connection of a process has ended.
    pub(super) fn leave(self: &Rc<StoreServer>, member: RankId) {
        let left = self.state.borrow_mut().members.remove(&member);
        left.into_iter().flat_map(|it| it.waits).for_each(|(_, timer)| timer.abort());
        self.change(|core, effects| core.member_ended(member, effects));
        let kept = self.state.borrow_mut().forgotten.remove(&member);
        if let Some(keep) = kept {
            self.forget(member, keep);
        }
    }

    /// A process has ended: of the objects that it named, these alone are held.
    pub(super) fn forget(self: &Rc<StoreServer>, maker: RankId, keep: BTreeSet<ObjectId>) {
        let is_connected = self.state.borrow().members.contains_key(&maker);
        if is_connected {
            self.state.borrow_mut().forgotten.insert(maker, keep);
        } else {
            self.change(|core, effects| core.forget(maker, &keep, effects));
        }
    }

    /// What goes with a reply. None if the object has gone, and with it the reason for the reply.
    pub(super) fn memory_of(&self, reply: &StoreReply) -> Option<SharedMemory> {
        let memories = &self.state.borrow().memories;
        match reply {
            StoreReply::Allocated { object } => memories.fresh(*object).map(SharedMemory::Fresh),
            StoreReply::HandOver { object, .. } => memories.sealed(*object).map(SharedMemory::Sealed),
            StoreReply::Stored { .. } | StoreReply::Fetching { .. } | StoreReply::Refused { .. } => None,
        }
    }

    /// Does what a process asks for.
    ///
    /// # Errors
    /// If no process of the application asks for this.
    pub(super) fn receive(
        self: &Rc<StoreServer>,
        from: RankId,
        request: StoreRequest,
    ) -> Result<(), LinkFailure> {
        match request {
            StoreRequest::Reserve { object, bytes } => {
                check_maker(object, from)?;
                self.begin_wait(from, object)?;
                let kind = ObjectKind::Primary;
                self.change(|core, effects| core.reserve(object, bytes, kind, from, effects));
            }
            StoreRequest::Remake { object, bytes } => {
                if self.state.borrow().core.has(object) {
                    self.state.borrow().reply(from, StoreReply::Stored { object });
                } else {
                    self.begin_wait(from, object)?;
                    let kind = ObjectKind::Primary;
                    self.change(|core, effects| core.reserve(object, bytes, kind, from, effects));
                }
            }
            StoreRequest::Filled { object } => {
                self.check_making(object, from)?;
                self.state.borrow_mut().memories.seal(object).map_err(LinkFailure::Protocol)?;
                self.change(|core, effects| core.filled(object, effects));
                self.state.borrow().reply(from, StoreReply::Stored { object });
            }
            StoreRequest::Abandon { object } => {
                self.state.borrow_mut().end_wait(from, object);
                // An object that it did not name may have been refused to it, or be complete: it stays.
                if object.maker == from || self.state.borrow().core.is_made_by(object, from) {
                    self.change(|core, effects| core.abandoned(object, from, effects));
                }
            }
            StoreRequest::Want { object } => {
                self.begin_wait(from, object)?;
                self.change(|core, effects| core.wanted(object, from, effects));
            }
            StoreRequest::Unmapped { object } => {
                self.change(|core, effects| core.unmapped(object, from, effects));
            }
        }
        Ok(())
    }

    /// A process fills the memory alone that it has reserved.
    fn check_making(&self, object: ObjectId, from: RankId) -> Result<(), LinkFailure> {
        match self.state.borrow().core.is_made_by(object, from) {
            true => Ok(()),
            false => Err(LinkFailure::Protocol(format!("it has no memory for object {object}"))),
        }
    }

    /// From now on a process waits for an object, until it gets an answer or has waited long enough.
    fn begin_wait(self: &Rc<StoreServer>, by: RankId, object: ObjectId) -> Result<(), LinkFailure> {
        let mut state = self.state.borrow_mut();
        let waits = &mut state.members.get_mut(&by).ok_or(LinkFailure::Closed)?.waits;
        if waits.len() >= MAX_STORE_WAITS || waits.contains_key(&object) {
            let text = format!("it waits for object {object} twice, or for more than {MAX_STORE_WAITS}");
            return Err(LinkFailure::Protocol(text));
        }
        waits.insert(object, self.patience_for(object, by));
        Ok(())
    }

    /// Ends a wait for room.
    fn patience_for(self: &Rc<StoreServer>, object: ObjectId, by: RankId) -> AbortHandle {
        let server = Rc::clone(self);
        let timer = spawn_local(async move {
            sleep(server.settings.patience).await;
            server.change(|core, effects| core.timed_out(object, by, effects));
        });
        timer.abort_handle()
    }

    /// Those who wait for an object begin to wait for room: until now they waited for another node.
    pub(super) fn restart_patience(self: &Rc<StoreServer>, object: ObjectId) {
        for (by, member) in &mut self.state.borrow_mut().members {
            if let Some(timer) = member.waits.get_mut(&object) {
                std::mem::replace(timer, self.patience_for(object, *by)).abort();
            }
        }
    }

    /// Tells the process of the store, which may have ended.
    pub(super) fn tell(&self, word: FromStore) {
        let _told = self.outlets.told.send(word);
    }

    /// Changes the core, and carries out what follows.
    pub(super) fn change(self: &Rc<StoreServer>, change: impl FnOnce(&mut ObjectStore, &mut Effects)) {
        let mut effects = Vec::new();
        let mut state = self.state.borrow_mut();
        change(&mut state.core, &mut effects);
        for effect in effects {
            self.carry_out(&mut state, effect);
        }
    }

    fn carry_out(self: &Rc<StoreServer>, state: &mut NodeStoreState, effect: ObjectStoreEffect) {
        let server = Rc::clone(self);
        match effect {
            ObjectStoreEffect::Allocate { object, bytes, maker } => {
                let number = state.memories.allocate(object);
                spawn_local(server.allocate(object, number, bytes, maker));
            }
            ObjectStoreEffect::HandOver { object, to } => {
                let bytes = state.memories.sealed(object).map_or(0, |it| it.bytes());
                state.answer(to, object, StoreReply::HandOver { object, bytes });
            }
            ObjectStoreEffect::Spill { object } => drop(spawn_local(server.spill(object))),
            ObjectStoreEffect::BringBack { object } => drop(spawn_local(server.bring_back(object))),
            ObjectStoreEffect::Drop { object, place } => {
                let discarded = state.memories.take(object, place);
                discarded.into_iter().for_each(|it| drop(spawn_local(Rc::clone(&server).discard(it))));
            }
            ObjectStoreEffect::Refuse { object, to, reason } => {
                let refused = RefusedRequest {
                    object,
                    reason,
                    store: &state.core,
                    patience: self.settings.patience,
                    failure: state.failure.as_deref(),
                };
                let error = refused.error();
                state.answer(to, object, StoreReply::Refused { object, error });
            }
            ObjectStoreEffect::AwaitFetch { object, to } => state.reply(to, StoreReply::Fetching { object }),
            ObjectStoreEffect::Ask { object } => self.tell(FromStore::Wants { object }),
            ObjectStoreEffect::Fetch { object, bytes } => {
                let number = state.memories.allocate(object);
                spawn_local(server.fetch(object, number, bytes));
            }
            ObjectStoreEffect::FetchSettled { object } => {
                state.sources.remove(&object);
                self.tell(FromStore::Fetched { object, result: Ok(()) });
            }
            ObjectStoreEffect::CopyDropped { object } => self.tell(FromStore::Dropped { object }),
            ObjectStoreEffect::Lose { object, to, error } => {
                let error = bounded(error);
                state.answer(to, object, StoreReply::Refused { object, error });
            }
        }
    }

    async fn allocate(
        self: Rc<StoreServer>,
        object: ObjectId,
        number: AllocationNumber,
        bytes: u64,
        maker: RankId,
    ) {
        let allocated = self.allocating(move || FreshMemory::allocate(bytes)).await;
        if !self.state.borrow().memories.awaits(object, number) {
            return self.discard(Box::new(allocated)).await;
        }
        match allocated {
            Ok(memory) => {
                let mut state = self.state.borrow_mut();
                state.memories.allocated(object, memory);
                state.answer(maker, object, StoreReply::Allocated { object });
            }
            Err(error) => {
                self.note_failure(object, "cannot allocate memory", &error);
                self.change(|core, effects| core.not_allocated(object, effects));
            }
        }
    }

    async fn spill(self: Rc<StoreServer>, object: ObjectId) {
        let Some(memory) = self.state.borrow().memories.sealed(object) else { return };
        let directory = self.settings.spill_directory.clone();
        let _permit = self.transfers.acquire().await;
        let spilled = blocking(move || SpillFile::write(&memory, &directory)).await;
        let result = match spilled {
            Ok(file) => {
                let mut state = self.state.borrow_mut();
                state.memories.spilled(object, file);
                state.failure = None;
                TransferResult::Done
            }
            Err(error) => {
                let directory = self.settings.spill_directory.display();
                self.note_failure(object, &format!("cannot spill to {directory}"), &error);
                TransferResult::Failed
            }
        };
        self.change(|core, effects| core.spilled(object, result, effects));
    }

    async fn bring_back(self: Rc<StoreServer>, object: ObjectId) {
        let Some(file) = self.state.borrow().memories.on_disk(object) else { return };
        let _permit = self.transfers.acquire().await;
        let result = match self.allocating(move || file.read()).await {
            Ok(memory) => {
                self.state.borrow_mut().memories.came_back(object, memory);
                TransferResult::Done
            }
            Err(error) => {
                self.note_failure(object, "cannot bring back from disk", &error);
                TransferResult::Failed
            }
        };
        self.change(|core, effects| core.brought_back(object, result, effects));
    }

    /// Runs work that takes memory, after all that was given back before is free.
    pub(super) async fn allocating<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        drop(self.discards.write().await);
        blocking(work).await
    }

    /// Gives back memory or disk space.
    pub(super) async fn discard(self: Rc<StoreServer>, discarded: Discarded) {
        let _discarding = self.discards.read().await;
        blocking(move || drop(discarded)).await;
    }

    pub(super) fn note_failure(&self, object: ObjectId, action: &str, error: &MemoryError) {
        tracing::warn!(%object, %error, "{action}");
        self.state.borrow_mut().failure = Some(format!("{action}: {error}"));
    }
}

impl NodeStoreState {
    /// A process that waits for an object waits no longer.
    fn answer(&mut self, to: RankId, object: ObjectId, reply: StoreReply) {
        self.end_wait(to, object);
        self.reply(to, reply);
    }

    fn end_wait(&mut self, by: RankId, object: ObjectId) {
        let waiting = self.members.get_mut(&by).and_then(|it| it.waits.remove(&object));
        waiting.into_iter().for_each(|timer| timer.abort());
    }

    fn reply(&self, to: RankId, reply: StoreReply) {
        if let Some(member) = self.members.get(&to) {
            member.replies.push(reply);
        }
    }
}

/// Runs work on a thread that may block. A panic of it is one of whoever waits.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match spawn_blocking(work).await.map_err(JoinError::try_into_panic) {
        Ok(result) => result,
        Err(Ok(panic)) => resume_unwind(panic),
        // The runtime ends, and this task with it.
        Err(Err(_)) => pending().await,
    }
}

/// A process makes the objects alone that it names.
fn check_maker(object: ObjectId, from: RankId) -> Result<(), LinkFailure> {
    match object.maker == from {
        true => Ok(()),
        false => Err(LinkFailure::Protocol(format!("it makes object {object} of another process"))),
    }
}
