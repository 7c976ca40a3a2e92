//! The memory and the spill files of a node's objects.

use std::any::Any;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use cohabit_application_core::{ObjectId, ObjectPlace};
use cohabit_memory::{FreshMemory, MemoryError, SealedMemory, SpillFile};

/// What a store has of its objects.
#[derive(Debug, Default)]
pub(super) struct ObjectMemories {
    memory: BTreeMap<ObjectId, ObjectMemory>,
    disk: BTreeMap<ObjectId, Arc<SpillFile>>,
    allocations: u64,
}

/// One of several allocations, should an object be reserved again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AllocationNumber(u64);

#[derive(Debug)]
enum ObjectMemory {
    /// It is being allocated.
    Awaited(AllocationNumber),
    /// Its maker fills it.
    Fresh(Arc<FreshMemory>),
    Sealed(Arc<SealedMemory>),
}

/// Memory that a descriptor is sent of.
#[derive(Debug, Clone)]
pub(super) enum SharedMemory {
    Fresh(Arc<FreshMemory>),
    Sealed(Arc<SealedMemory>),
}

/// The bytes of an object that another node fetches.
#[derive(Debug, Clone)]
pub(super) enum ObjectSource {
    Memory(Arc<SealedMemory>),
    Disk(Arc<SpillFile>),
}

/// Something that takes time to drop.
pub(super) type Discarded = Box<dyn Any + Send>;

impl ObjectMemories {
    /// An allocation begins.
    pub(super) fn allocate(&mut self, object: ObjectId) -> AllocationNumber {
        self.allocations += 1;
        let number = AllocationNumber(self.allocations);
        self.memory.insert(object, ObjectMemory::Awaited(number));
        number
    }

    /// Whether this allocation of the object is still wanted.
    pub(super) fn awaits(&self, object: ObjectId, number: AllocationNumber) -> bool {
        matches!(self.memory.get(&object), Some(ObjectMemory::Awaited(awaited)) if *awaited == number)
    }

    pub(super) fn allocated(&mut self, object: ObjectId, memory: FreshMemory) {
        self.memory.insert(object, ObjectMemory::Fresh(Arc::new(memory)));
    }

    /// The maker has filled and sealed its memory.
    ///
    /// # Errors
    /// In words, if it has not, or had none. The memory is gone then.
    pub(super) fn seal(&mut self, object: ObjectId) -> Result<(), String> {
        let fresh = self.memory.extract_if(object..=object, |_, it| matches!(it, ObjectMemory::Fresh(_)));
        let Some((_, ObjectMemory::Fresh(memory))) = { fresh }.next() else {
            return Err(format!("it has no memory for object {object}"));
        };
        // As long as its descriptor is on its way to the maker, it cannot be filled.
        let memory =
            Arc::into_inner(memory).ok_or_else(|| format!("it cannot have filled object {object}"))?;
        let sealed: Result<SealedMemory, MemoryError> = memory.into_sealed();
        let sealed = sealed.map_err(|error| format!("it has not filled object {object}: {error}"))?;
        self.came_back(object, sealed);
        Ok(())
    }

    /// An object has come back from disk, or from another node.
    pub(super) fn came_back(&mut self, object: ObjectId, memory: SealedMemory) {
        self.memory.insert(object, ObjectMemory::Sealed(Arc::new(memory)));
    }

    pub(super) fn sealed(&self, object: ObjectId) -> Option<Arc<SealedMemory>> {
        match self.memory.get(&object)? {
            ObjectMemory::Sealed(memory) => Some(Arc::clone(memory)),
            ObjectMemory::Awaited(_) | ObjectMemory::Fresh(_) => None,
        }
    }

    pub(super) fn fresh(&self, object: ObjectId) -> Option<Arc<FreshMemory>> {
        match self.memory.get(&object)? {
            ObjectMemory::Fresh(memory) => Some(Arc::clone(memory)),
            ObjectMemory::Awaited(_) | ObjectMemory::Sealed(_) => None,
        }
    }

    /// What another node can fetch, wherever it lies.
    pub(super) fn source(&self, object: ObjectId) -> Option<ObjectSource> {
        let sealed = self.sealed(object).map(ObjectSource::Memory);
        sealed.or_else(|| self.on_disk(object).map(ObjectSource::Disk))
    }

    pub(super) fn spilled(&mut self, object: ObjectId, file: SpillFile) {
        self.disk.insert(object, Arc::new(file));
    }

    pub(super) fn on_disk(&self, object: ObjectId) -> Option<Arc<SpillFile>> {
        self.disk.get(&object).map(Arc::clone)
    }

    /// Takes what lies at this place.
    pub(super) fn take(&mut self, object: ObjectId, place: ObjectPlace) -> Option<Discarded> {
        match place {
            ObjectPlace::Memory => match self.memory.remove(&object)? {
                ObjectMemory::Awaited(_) => None,
                ObjectMemory::Fresh(memory) => Some(Box::new(memory)),
                ObjectMemory::Sealed(memory) => Some(Box::new(memory)),
            },
            ObjectPlace::Disk => Some(Box::new(self.disk.remove(&object)?)),
        }
    }
}

impl AsFd for SharedMemory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            SharedMemory::Fresh(memory) => memory.as_fd(),
            SharedMemory::Sealed(memory) => memory.as_fd(),
        }
    }
}
