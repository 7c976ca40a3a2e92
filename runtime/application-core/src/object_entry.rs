//! One object of the store of a node: where it is, who maps it and who waits for it.
//!
//! An object may be here that is not: somebody wants it, and it comes from another node.

use std::collections::BTreeMap;

use cohabit_types::RankId;

use crate::object_store_effect::{ObjectKind, ObjectPlace};

/// An object of the store.
#[derive(Debug)]
pub(crate) struct ObjectEntry {
    pub(crate) bytes: u64,
    pub(crate) kind: ObjectKind,
    pub(crate) progress: ObjectProgress,
    pub(crate) holding: Holding,
    /// Mappings by member. Memory that is mapped stays.
    pub(crate) mapped: BTreeMap<RankId, u64>,
    /// Readers that wait for it, in order; one may wait several times.
    pub(crate) readers: Vec<RankId>,
    /// The coordinator was asked for it, and has not answered.
    pub(crate) is_asked: bool,
    /// Its key among the cold objects, when it is one.
    pub(crate) last_use: u64,
}

/// How far an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObjectProgress {
    /// It is not here: the coordinator was asked for it. Its size is not known.
    Wanted,
    /// It is not here, and waits for room to be fetched.
    AwaitingFetch,
    /// Its memory is being filled from another node.
    Fetching,
    /// Its maker waits for room.
    Awaiting {
        maker: RankId,
    },
    /// Its maker has memory and fills it.
    Reserved {
        maker: RankId,
    },
    InMemory,
    /// It is in memory, and its spill file is being written.
    Spilling,
    OnDisk,
    /// It is on disk, and is being copied to memory.
    BringingBack,
}

/// Whether somebody holds an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holding {
    Held,
    /// Nobody holds it: it goes once nothing is done with it.
    Freed,
}

impl ObjectProgress {
    pub(crate) const fn has_memory(self) -> bool {
        match self {
            ObjectProgress::Fetching
            | ObjectProgress::Reserved { .. }
            | ObjectProgress::InMemory
            | ObjectProgress::Spilling
            | ObjectProgress::BringingBack => true,
            ObjectProgress::Wanted
            | ObjectProgress::AwaitingFetch
            | ObjectProgress::Awaiting { .. }
            | ObjectProgress::OnDisk => false,
        }
    }

    /// Where its bytes are, those to come included: while it is moved, in memory.
    pub(crate) const fn place(self) -> Option<ObjectPlace> {
        match self {
            ObjectProgress::Wanted | ObjectProgress::AwaitingFetch | ObjectProgress::Awaiting { .. } => None,
            ObjectProgress::OnDisk => Some(ObjectPlace::Disk),
            ObjectProgress::Fetching
            | ObjectProgress::Reserved { .. }
            | ObjectProgress::InMemory
            | ObjectProgress::Spilling
            | ObjectProgress::BringingBack => Some(ObjectPlace::Memory),
        }
    }

    /// Who has reserved it and not filled it.
    pub(crate) const fn unfilled_by(self) -> Option<RankId> {
        match self {
            ObjectProgress::Awaiting { maker } | ObjectProgress::Reserved { maker } => Some(maker),
            ObjectProgress::Wanted
            | ObjectProgress::AwaitingFetch
            | ObjectProgress::Fetching
            | ObjectProgress::InMemory
            | ObjectProgress::Spilling
            | ObjectProgress::OnDisk
            | ObjectProgress::BringingBack => None,
        }
    }

    /// Whether the node has all its bytes.
    pub(crate) const fn is_complete(self) -> bool {
        match self {
            ObjectProgress::InMemory
            | ObjectProgress::Spilling
            | ObjectProgress::OnDisk
            | ObjectProgress::BringingBack => true,
            ObjectProgress::Wanted
            | ObjectProgress::AwaitingFetch
            | ObjectProgress::Fetching
            | ObjectProgress::Awaiting { .. }
            | ObjectProgress::Reserved { .. } => false,
        }
    }

    pub(crate) const fn is_on_disk(self) -> bool {
        match self {
            ObjectProgress::OnDisk | ObjectProgress::BringingBack => true,
            ObjectProgress::Wanted
            | ObjectProgress::AwaitingFetch
            | ObjectProgress::Fetching
            | ObjectProgress::Awaiting { .. }
            | ObjectProgress::Reserved { .. }
            | ObjectProgress::InMemory
            | ObjectProgress::Spilling => false,
        }
    }
}

impl ObjectEntry {
    /// Nobody has asked for it yet.
    pub(crate) const fn wanted() -> ObjectEntry {
        ObjectEntry {
            bytes: 0,
            kind: ObjectKind::Copy,
            progress: ObjectProgress::Wanted,
            holding: Holding::Held,
            mapped: BTreeMap::new(),
            readers: Vec::new(),
            is_asked: false,
            last_use: 0,
        }
    }

    /// Whether it stays in memory although its spill file is complete.
    pub(crate) fn stays_in_memory(&self) -> bool {
        !self.mapped.is_empty() || self.holding == Holding::Freed
    }

    pub(crate) fn is_cold(&self) -> bool {
        self.progress == ObjectProgress::InMemory && !self.stays_in_memory()
    }

    pub(crate) fn needs_room(&self) -> bool {
        match self.progress {
            ObjectProgress::Awaiting { .. } | ObjectProgress::AwaitingFetch => true,
            ObjectProgress::OnDisk => !self.readers.is_empty(),
            ObjectProgress::Wanted
            | ObjectProgress::Fetching
            | ObjectProgress::Reserved { .. }
            | ObjectProgress::InMemory
            | ObjectProgress::Spilling
            | ObjectProgress::BringingBack => false,
        }
    }

    /// Whether what is said of it fits together.
    pub(crate) fn is_possible(&self) -> bool {
        let (is_freed, is_mapped) = (self.holding == Holding::Freed, !self.mapped.is_empty());
        let is_primary = self.kind == ObjectKind::Primary;
        let counts_fit = self.mapped.values().all(|count| *count > 0);
        counts_fit
            && match self.progress {
                ObjectProgress::Wanted => {
                    !is_freed && !is_mapped && self.bytes == 0 && self.is_asked && !is_primary
                }
                ObjectProgress::AwaitingFetch => {
                    !is_freed && !is_mapped && !self.readers.is_empty() && !self.is_asked && !is_primary
                }
                ObjectProgress::Fetching => !is_mapped && !self.is_asked && !is_primary,
                ObjectProgress::Awaiting { .. } | ObjectProgress::OnDisk => !is_freed && !is_mapped,
                ObjectProgress::Reserved { .. } | ObjectProgress::BringingBack => !is_mapped,
                ObjectProgress::InMemory => self.readers.is_empty() && (is_mapped || !is_freed),
                ObjectProgress::Spilling => self.readers.is_empty() && is_primary,
            }
    }
}
