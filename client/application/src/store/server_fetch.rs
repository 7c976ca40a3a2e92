//! What the coordinator says to the store, and objects that are fetched from other nodes.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cohabit_application_core::{
    FetchFailure, FromStore, NodeNumber, ObjectId, StoreFigures, ToStore, TransferResult,
};
use cohabit_memory::{FreshMemory, SealedMemory};
use tokio::time::sleep;

use super::object_memory::{AllocationNumber, ObjectSource};
use super::refusal::shortened;
use super::server::{StoreServer, blocking};
use super::transfer::{FetchedObject, pull};

/// Pause before the coordinator hears of a failure after which it may say the same again.
const PAUSE: Duration = Duration::from_secs(1);

/// The most objects that the coordinator is told of.
const MOST_TOLD: usize = 10_000;

impl StoreServer {
    /// Does what the coordinator says.
    pub(super) fn obey(self: &Rc<StoreServer>, word: ToStore) {
        match word {
            ToStore::Free { object } => self.change(|core, effects| core.free(object, effects)),
            ToStore::Keep { object } => self.change(|core, _| core.keep(object)),
            ToStore::Forget { maker, keep } => self.forget(maker, keep.into_iter().collect()),
            ToStore::Fetch { object, bytes, from } => {
                self.state.borrow_mut().sources.insert(object, from);
                self.change(|core, effects| core.fetch(object, bytes, effects));
                self.restart_patience(object);
            }
            ToStore::Lost { object, error } => {
                self.change(|core, effects| core.lost(object, &error, effects));
            }
            ToStore::Tell { request } => {
                let figures: StoreFigures = self.figures().of_largest(MOST_TOLD);
                self.tell(FromStore::Told { request, figures });
            }
        }
    }

    /// What another node can fetch of an object, which counts as a use.
    pub(super) fn source(&self, object: ObjectId) -> Option<ObjectSource> {
        let mut state = self.state.borrow_mut();
        state.core.served(object);
        state.memories.source(object)
    }

    /// Fetches an object from the node that the coordinator named.
    pub(super) async fn fetch(self: Rc<StoreServer>, object: ObjectId, number: AllocationNumber, bytes: u64) {
        // What comes takes its memory with it: allocating all of it first would take a third of the time.
        let memory = match self.allocating(move || FreshMemory::reserve(bytes)).await {
            Ok(memory) => Arc::new(memory),
            Err(error) => {
                self.note_failure(object, "cannot allocate memory", &error);
                return self.change(|core, effects| core.not_allocated(object, effects));
            }
        };
        let source = self.state.borrow().sources.get(&object).copied();
        let pulled = self.pull(object, source, Arc::clone(&memory)).await;
        let sealed = match pulled {
            Ok(()) => seal(memory).await,
            Err(error) => {
                Rc::clone(&self).discard(Box::new(memory)).await;
                Err(error)
            }
        };
        match sealed {
            Ok(memory) => self.end_fetch(object, number, memory),
            Err(failure) => {
                if let FetchFailure::Failed(error) = &failure {
                    tracing::warn!(%object, ?source, %error, "cannot fetch an object");
                    sleep(PAUSE).await;
                }
                self.state.borrow_mut().sources.remove(&object);
                self.tell(FromStore::Fetched { object, result: Err(failure) });
                self.change(|core, effects| core.fetched(object, TransferResult::Failed, effects));
            }
        }
    }

    async fn pull(
        &self,
        object: ObjectId,
        source: Option<NodeNumber>,
        memory: Arc<FreshMemory>,
    ) -> Result<(), FetchFailure> {
        let source = source.ok_or_else(|| "nobody has said which node has it".to_owned())?;
        let fetched = FetchedObject { object, memory };
        let threads = self.transfer_threads.handle().map_err(|error| format!("no thread: {error}"))?;
        let pulled = pull(&self.outlets.connector, source, &fetched, threads).await;
        pulled.map_err(|failure| match failure {
            FetchFailure::Missing => FetchFailure::Missing,
            FetchFailure::Failed(text) => FetchFailure::Failed(shortened(format!("node {source}: {text}"))),
        })
    }

    fn end_fetch(self: &Rc<StoreServer>, object: ObjectId, number: AllocationNumber, memory: SealedMemory) {
        let mut state = self.state.borrow_mut();
        state.sources.remove(&object);
        debug_assert!(state.memories.awaits(object, number), "it stays until the fetch has ended");
        state.memories.came_back(object, memory);
        drop(state);
        self.tell(FromStore::Fetched { object, result: Ok(()) });
        self.change(|core, effects| core.fetched(object, TransferResult::Done, effects));
    }
}

/// Makes fetched memory immutable.
async fn seal(memory: Arc<FreshMemory>) -> Result<SealedMemory, FetchFailure> {
    let memory = Arc::into_inner(memory).ok_or_else(|| "something still fills its memory".to_owned())?;
    Ok(blocking(move || memory.seal()).await.map_err(|error| error.to_string())?)
}
