//! One object of the store of a node: where it is, who maps it and who waits for it.

use std::collections::BTreeMap;

use cohabit_types::AttemptId;

use crate::object_store_effect::{ObjectKind, ObjectPlace};

/// An object of the store.
#[derive(Debug)]
pub(crate) struct ObjectEntry {
    pub(crate) bytes: u64,
    pub(crate) kind: ObjectKind,
    pub(crate) progress: Progress,
    pub(crate) holding: Holding,
    /// Mappings by member. Memory that is mapped stays.
    pub(crate) mapped: BTreeMap<AttemptId, u64>,
    /// Readers that wait for it, in order; one may wait several times.
    pub(crate) readers: Vec<AttemptId>,
    /// Its key among the cold objects, when it is one.
    pub(crate) last_use: u64,
}

/// How far an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Its maker waits for room.
    Awaiting {
        maker: AttemptId,
    },
    /// Its maker has memory and fills it.
    Reserved {
        maker: AttemptId,
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

impl Progress {
    pub(crate) const fn has_memory(self) -> bool {
        match self {
            Progress::Reserved { .. } | Progress::InMemory | Progress::Spilling | Progress::BringingBack => {
                true
            }
            Progress::Awaiting { .. } | Progress::OnDisk => false,
        }
    }

    /// Where its bytes are, those to come included: while it is moved, in memory.
    pub(crate) const fn place(self) -> Option<ObjectPlace> {
        match self {
            Progress::Awaiting { .. } => None,
            Progress::OnDisk => Some(ObjectPlace::Disk),
            Progress::Reserved { .. } | Progress::InMemory | Progress::Spilling | Progress::BringingBack => {
                Some(ObjectPlace::Memory)
            }
        }
    }

    /// Who has reserved it and not filled it.
    pub(crate) const fn unfilled_by(self) -> Option<AttemptId> {
        match self {
            Progress::Awaiting { maker } | Progress::Reserved { maker } => Some(maker),
            Progress::InMemory | Progress::Spilling | Progress::OnDisk | Progress::BringingBack => None,
        }
    }

    pub(crate) const fn is_on_disk(self) -> bool {
        match self {
            Progress::OnDisk | Progress::BringingBack => true,
            Progress::Awaiting { .. }
            | Progress::Reserved { .. }
            | Progress::InMemory
            | Progress::Spilling => false,
        }
    }
}

impl ObjectEntry {
    /// Whether it stays in memory although its spill file is complete.
    pub(crate) fn stays_in_memory(&self) -> bool {
        !self.mapped.is_empty() || self.holding == Holding::Freed
    }

    pub(crate) fn is_cold(&self) -> bool {
        self.progress == Progress::InMemory && !self.stays_in_memory()
    }

    pub(crate) fn needs_room(&self) -> bool {
        match self.progress {
            Progress::Awaiting { .. } => true,
            Progress::OnDisk => !self.readers.is_empty(),
            Progress::Reserved { .. } | Progress::InMemory | Progress::Spilling | Progress::BringingBack => {
                false
            }
        }
    }

    /// Whether what is said of it fits together.
    pub(crate) fn is_possible(&self) -> bool {
        let (is_freed, is_mapped) = (self.holding == Holding::Freed, !self.mapped.is_empty());
        let counts_fit = self.mapped.values().all(|count| *count > 0);
        counts_fit
            && match self.progress {
                Progress::Awaiting { .. } | Progress::OnDisk => !is_freed && !is_mapped,
                Progress::Reserved { .. } | Progress::BringingBack => !is_mapped,
                Progress::InMemory => self.readers.is_empty() && (is_mapped || !is_freed),
                Progress::Spilling => self.readers.is_empty() && self.kind == ObjectKind::Primary,
            }
    }
}
