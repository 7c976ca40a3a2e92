//! What a store has, for people.

use cohabit_types::AttemptId;

use crate::ids::ObjectId;
use crate::object_store_effect::ObjectPlace;

/// What the store of a node has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreFigures {
    /// The memory for all objects, in bytes.
    pub budget: u64,
    /// Bytes in memory, those that are being filled or moved included.
    pub memory: u64,
    /// Bytes on disk.
    pub disk: u64,
    /// All objects, in the order of their ids.
    pub objects: Vec<ObjectFigures>,
}

/// What the store of a node has of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectFigures {
    /// The object.
    pub object: ObjectId,
    /// Its size.
    pub bytes: u64,
    /// Where it is; none while its maker waits for room.
    pub place: Option<ObjectPlace>,
    /// Who maps it, and how often.
    pub mapped: Vec<(AttemptId, u64)>,
}

impl StoreFigures {
    /// Bytes of objects that somebody maps: they cannot leave memory.
    #[must_use]
    pub fn mapped_bytes(&self) -> u64 {
        self.objects.iter().filter(|it| !it.mapped.is_empty()).map(|it| it.bytes).sum()
    }
}
