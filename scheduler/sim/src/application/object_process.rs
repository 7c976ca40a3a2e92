//! The objects in a simulated process: those that it stores, opens and needs.

use bytes::Bytes;
use cohabit_application_core::{HeldId, ObjectId, Ticket};

/// Who keeps handles that are decoded.
#[derive(Debug, Clone, Copy)]
pub(super) enum HandleOwner {
    Process,
    Task(Ticket),
    Nobody,
}

/// An object on its way into the store.
#[derive(Debug)]
pub(super) struct Storing {
    pub(super) bytes: u64,
    pub(super) payload: Bytes,
    pub(super) kind: MakingKind,
    /// The handles in it, each of which the process holds once more for it.
    pub(super) carries: Vec<HeldId>,
    pub(super) purpose: StorePurpose,
}

/// Whether an object is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MakingKind {
    New,
    /// It was lost.
    Again,
}

/// What becomes of an object that is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StorePurpose {
    Put,
    /// It is the value of a running task.
    Task(Ticket),
    /// It is the value of a running method.
    Method(Ticket),
}

/// What it means that something has no value that code needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailedNeed {
    /// It must not begin.
    Forbidden,
    /// It is a constructor, and fails.
    Possible,
}

/// A stored object whose handles were asked for. The process holds the reference once more for it.
#[derive(Debug)]
pub(super) struct OpenedObject {
    pub(super) reference: ObjectId,
    pub(super) payload: Bytes,
    pub(super) owner: HandleOwner,
}
