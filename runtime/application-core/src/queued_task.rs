//! One task at its caller: where it is, and whether it may be sent again.

use std::cmp::Reverse;

use bytes::Bytes;
use cohabit_types::{RankId, Span};

use crate::errors::CallError;
use crate::frames::TaskRequest;
use crate::held::HeldId;
use crate::ids::{CallNumber, ObjectId, Ticket};
use crate::needed_bytes::NeededBytes;
use crate::stream_reader::StreamReader;
use crate::task_class::{OnTaskError, TaskClass};

/// A task that has not ended.
#[derive(Debug)]
pub(crate) struct QueuedTask {
    pub(crate) function: u32,
    pub(crate) depth: u32,
    pub(crate) arguments: Bytes,
    pub(crate) needs: Vec<ObjectId>,
    pub(crate) carries: Vec<HeldId>,
    pub(crate) caller: Option<Ticket>,
    pub(crate) on_error: OnTaskError,
    /// How often it may still be sent again.
    pub(crate) retries: u32,
    /// How many processes ended that had got it.
    pub(crate) ends: u32,
    pub(crate) wish: Wish,
    pub(crate) turn: Turn,
    pub(crate) place: Place,
    /// What its runner says that it needs before it goes on. Before the first such word it has not started.
    pub(crate) blocked: Option<Vec<TaskClass>>,
    /// How it stands with a recall when it is sent: `None` or `Moved`.
    pub(crate) recall_at_send: Recall,
    /// Its stream; none as long as no item of it has arrived.
    pub(crate) stream: Option<Box<StreamReader>>,
    /// The lost object that it makes again.
    pub(crate) store_as: Option<ObjectId>,
    /// Where the stored objects are that it needs.
    pub(crate) spread: NeededBytes,
}

/// Whether somebody waits for its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    Value,
    /// It was cancelled, and is not sent again.
    End,
}

/// Which tasks are sent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Turn {
    /// It was sent before.
    Again,
    First,
}

/// Where a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// It was not sent, or its runner has it no longer.
    Waiting,
    /// It was sent to a runner, whose window it takes up by so much.
    InFlight { at: RankId, work: Span, recall: Recall },
    /// It waits at its runner for calls of its own.
    Parked { at: RankId },
}

/// Whether a runner was asked to return a task that it has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recall {
    None,
    Asked,
    /// It has started.
    Kept,
    /// Another runner has returned it. It stays until a further runner joins: where all runners are busy with
    /// the tasks of others, it would move for ever.
    Moved,
}

impl Place {
    /// The runner that has the task.
    pub(crate) const fn runner(self) -> Option<RankId> {
        match self {
            Place::Waiting => None,
            Place::InFlight { at, .. } | Place::Parked { at } => Some(at),
        }
    }
}

/// Among tasks that were sent before, and among others: the deepest first, so that trees are walked depth
/// first, then in the order of the calls.
pub(crate) type WaitingKey = (Turn, Reverse<u32>, CallNumber);

impl QueuedTask {
    pub(crate) const fn waiting_key(&self, call: CallNumber) -> WaitingKey {
        (self.turn, Reverse(self.depth), call)
    }

    pub(crate) fn request(&mut self) -> TaskRequest {
        TaskRequest {
            function: self.function,
            depth: self.depth,
            arguments: self.arguments.clone(),
            needs: self.needs.clone(),
            store_as: self.store_as,
            resume: self.stream.as_mut().map(|stream| Box::new(stream.resume())),
        }
    }

    /// Takes one of the retries, or says that it ends.
    pub(crate) const fn retry(&mut self) -> Retry {
        match (self.wish, self.retries) {
            (Wish::Value, 1..) => {
                self.retries -= 1;
                self.turn = Turn::Again;
                Retry::Granted
            }
            (Wish::Value, 0) | (Wish::End, _) => Retry::Refused,
        }
    }

    /// How it ends after the end of a process that had got it, if it is not sent again.
    pub(crate) fn lost(&self) -> CallError {
        match self.wish {
            Wish::End => CallError::Cancelled,
            Wish::Value => {
                let text = "whether it ran is unknown; if it is safe to run again, allow it more retries, and \
                            more memory if its processes are ended for want of it";
                CallError::Lost { ends: self.ends, text: text.to_owned() }
            }
        }
    }
}

/// Whether a task is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retry {
    Granted,
    Refused,
}
