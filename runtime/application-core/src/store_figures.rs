//! What a store has, for people.

use std::cmp::Reverse;

use cohabit_types::RankId;
use serde::{Deserialize, Serialize};

use crate::ids::ObjectId;
use crate::object_store_effect::{ObjectKind, ObjectPlace};

/// What the store of a node has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreFigures {
    /// The memory for all objects, in bytes.
    pub budget: u64,
    /// Bytes in memory, those that are being filled or moved included.
    pub memory: u64,
    /// Bytes on disk.
    pub disk: u64,
    /// All objects, in the order of their ids, without those that were asked for and are not on their way.
    pub objects: Vec<ObjectFigures>,
    /// How many objects are left out.
    pub omitted: u64,
}

/// What the store of a node has of one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectFigures {
    /// The object.
    pub object: ObjectId,
    /// Its size.
    pub bytes: u64,
    /// Whether the bytes are also on another node.
    pub kind: ObjectKind,
    /// Where it is; none while it waits for room.
    pub place: Option<ObjectPlace>,
    /// Who maps it, and how often.
    pub mapped: Vec<(RankId, u64)>,
}

impl StoreFigures {
    /// The same of so many objects, the largest.
    #[must_use]
    pub fn of_largest(mut self, most: usize) -> StoreFigures {
        if self.objects.len() > most {
            self.omitted += (self.objects.len() - most) as u64;
            self.objects.sort_by_key(|it| (Reverse(it.bytes), it.object));
            self.objects.truncate(most);
            self.objects.sort_by_key(|it| it.object);
        }
        self
    }

    /// Bytes of objects that somebody maps: they cannot leave memory.
    #[must_use]
    pub fn mapped_bytes(&self) -> u64 {
        self.objects.iter().filter(|it| !it.mapped.is_empty()).map(|it| it.bytes).sum()
    }
}
