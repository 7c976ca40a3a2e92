//! What the process does with references: it waits for their values, keeps small ones, names and opens large
//! ones, and ends calls whose time is over.

use std::time::Instant;

use bytes::Bytes;
use cohabit_application_core::{CallError, HeldId, ObjectId, ObjectValue, StoredObject};
use tokio::sync::oneshot;

use super::calls::RoomTicket;
use super::member_process::MemberProcess;
use super::member_state::MemberState;
use super::reference_table::UnknownValue;
use crate::error::{Error, Result};

impl<H> MemberState<H> {
    /// The value of a reference that the process holds, or what tells when it is known.
    pub(super) fn value_or_wait(&mut self, object: ObjectId) -> Result<ObjectValue, UnknownValue> {
        self.member.object_value(object).ok_or_else(|| self.references.wait(object))
    }

    /// A small value becomes an object.
    pub(crate) fn keep_inline(&mut self, value: Bytes, carries: Vec<HeldId>) -> ObjectId {
        self.member.keep_inline(value, carries, &mut self.effects)
    }

    /// A name for an object that is to be stored.
    pub(super) fn new_object(&mut self) -> ObjectId {
        self.member.new_object()
    }

    /// The store of the node has an object. `carries` are the handles in it.
    pub(super) fn stored(&mut self, object: ObjectId, bytes: u64, carries: &[HeldId]) -> StoredObject {
        self.member.stored(object, bytes, carries, &mut self.effects)
    }

    /// Asks for the handles in a stored object.
    pub(super) fn open_object(&mut self, object: ObjectId) -> oneshot::Receiver<Vec<HeldId>> {
        let request = self.member.open_object(object, &mut self.effects);
        self.references.open(request)
    }

    /// The call of a reference goes on without it.
    pub(crate) fn detach_reference(&mut self, object: ObjectId) {
        self.member.detach_reference(object);
    }

    /// Ends the calls whose time is over. When the next one is.
    fn fail_late(&mut self, now: Instant) -> Option<Instant> {
        loop {
            match self.references.next_late(now) {
                Ok((object, limit)) => {
                    let error = CallError::TimedOut(limit.into());
                    self.member.fail_reference(object, error, &mut self.effects);
                }
                Err(next) => return next,
            }
        }
    }
}

/// A call that waits for room. If nobody waits for it any more, it is not made.
struct WaitsForRoom<'a> {
    process: &'a MemberProcess,
    ticket: RoomTicket,
}

impl Drop for WaitsForRoom<'_> {
    fn drop(&mut self) {
        self.process.with(|state| state.cancel_start(&mut self.ticket));
    }
}

impl MemberProcess {
    /// Waits until there is room for a call. The process then holds its reference once.
    ///
    /// # Errors
    /// If it may not be made.
    pub(crate) async fn room(&self, ticket: RoomTicket) -> Result<ObjectId> {
        let mut waits = WaitsForRoom { process: self, ticket };
        let made = (&mut waits.ticket.reply).await;
        made.map_err(|_| Error::Cancelled)?.map_err(Error::of_call)
    }

    /// Ends calls whose time is over, for ever.
    pub(crate) async fn watch_deadlines(&self) {
        loop {
            let next = self.with(|state| state.fail_late(Instant::now()));
            let changed = self.new_deadline.notified();
            match next {
                // A notice that is missed because the time is over is not needed.
                Some(next) => drop(tokio::time::timeout_at(next.into(), changed).await),
                None => changed.await,
            }
        }
    }
}
