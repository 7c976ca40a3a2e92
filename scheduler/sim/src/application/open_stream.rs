//! A stream that a process reads: the items that have come, and those that were read.

use std::collections::VecDeque;

use bytes::Bytes;
use cohabit_application_core::{CallError, CallValue, HeldId};

use super::payload::Tag;
use super::task_process::OpenTask;

/// A stream that a process reads.
#[derive(Debug)]
pub(super) struct OpenStream {
    pub(super) open: OpenTask,
    pub(super) unread: VecDeque<UnreadItem>,
    /// The items that were read.
    pub(super) values: Vec<u64>,
    /// How the task has ended.
    pub(super) end: Option<Result<CallValue, CallError>>,
    /// Whether the reader will look at it.
    pub(super) is_due: bool,
}

/// An item that has come and that nobody has read.
#[derive(Debug)]
pub(super) struct UnreadItem {
    pub(super) number: u64,
    pub(super) item: Bytes,
    /// The handles in it, which the process holds until it is decoded.
    pub(super) carries: Vec<HeldId>,
}

impl OpenStream {
    pub(super) const fn new(open: OpenTask) -> OpenStream {
        OpenStream { open, unread: VecDeque::new(), values: Vec::new(), end: None, is_due: false }
    }

    pub(super) fn holds(&self, held: HeldId) -> bool {
        self.unread.iter().any(|item| item.carries.contains(&held))
    }

    pub(super) const fn tag(&self) -> Tag {
        self.open.tag
    }
}
