//! The references of this process: who waits for their values, and how long their calls may take.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use cohabit_application_core::{HeldId, ObjectId, RequestNumber, Ticket};
use tokio::sync::oneshot;

use super::running_task::{CalleeKind, UnendedCall};

/// What is known of references, besides the core.
#[derive(Debug, Default)]
pub(super) struct ReferenceTable {
    /// Who waits until a value is known.
    waiting: HashMap<ObjectId, Vec<oneshot::Sender<()>>>,
    /// Calls that have not ended, as long as the process that made them has the reference.
    unended: HashMap<ObjectId, UnendedCall>,
    /// When calls fail that have not ended, and how long they were given.
    deadlines: BTreeMap<(Instant, ObjectId), Duration>,
    opening: HashMap<RequestNumber, oneshot::Sender<Vec<HeldId>>>,
}

/// A value that is not known.
#[derive(Debug)]
pub(super) struct UnknownValue {
    /// Whose it is.
    pub(super) callee: CalleeKind,
    /// Tells when it is known.
    pub(super) known: oneshot::Receiver<()>,
}

/// How long a call may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallLimit {
    pub(super) until: Instant,
    length: Duration,
}

impl CallLimit {
    pub(crate) fn from_now(length: Duration) -> Option<CallLimit> {
        // So long that it never ends.
        Some(CallLimit { until: Instant::now().checked_add(length)?, length })
    }
}

impl ReferenceTable {
    /// A call of this process has got a reference. Whether it is the next that may be late.
    pub(super) fn begin(&mut self, object: ObjectId, counts: UnendedCall, limit: Option<CallLimit>) -> bool {
        self.unended.insert(object, counts);
        let Some(CallLimit { until, length }) = limit else { return false };
        self.deadlines.insert((until, object), length);
        self.deadlines.first_key_value().is_some_and(|(first, _)| *first == (until, object))
    }

    /// The task that has made the call of a reference, as long as the call has not ended.
    pub(super) fn caller_of(&self, object: ObjectId) -> Option<Ticket> {
        self.unended.get(&object)?.caller()
    }

    /// Its call has ended.
    pub(super) fn end_call(&mut self, object: ObjectId, limit: Option<CallLimit>) {
        self.unended.remove(&object);
        if let Some(limit) = limit {
            self.deadlines.remove(&(limit.until, object));
        }
    }

    /// A call whose time is over, and how long it was given; else when the time of the next one is.
    pub(super) fn next_late(&mut self, now: Instant) -> Result<(ObjectId, Duration), Option<Instant>> {
        let next = self.deadlines.first_entry().ok_or(None)?;
        let (until, object) = *next.key();
        if until > now {
            return Err(Some(until));
        }
        Ok((object, next.remove()))
    }

    /// The process gave back its reference. It may have others, which came from elsewhere.
    pub(super) fn forget(&mut self, object: ObjectId) {
        self.unended.remove(&object);
        let waiting = self.waiting.get(&object);
        if waiting.is_some_and(|waiting| waiting.iter().all(oneshot::Sender::is_closed)) {
            self.waiting.remove(&object);
        }
    }

    /// The value is known.
    pub(super) fn wake(&mut self, object: ObjectId) {
        for waiting in self.waiting.remove(&object).unwrap_or_default() {
            // It may have waited long enough.
            let _told = waiting.send(());
        }
    }

    /// What tells when the value is known.
    pub(super) fn wait(&mut self, object: ObjectId) -> UnknownValue {
        let (sender, receiver) = oneshot::channel();
        let waiting = self.waiting.entry(object).or_default();
        if waiting.len() == waiting.capacity() {
            waiting.retain(|it| !it.is_closed());
        }
        waiting.push(sender);
        UnknownValue { callee: self.callee(object), known: receiver }
    }

    /// What the present code waits for if it waits for a reference.
    fn callee(&self, object: ObjectId) -> CalleeKind {
        let own = self.unended.get(&object).filter(|call| call.is_of_present_code());
        own.map_or(CalleeKind::Other, UnendedCall::awaited_callee)
    }

    /// The handles in a stored object come with the answer to this request.
    pub(super) fn open(&mut self, request: RequestNumber) -> oneshot::Receiver<Vec<HeldId>> {
        let (sender, receiver) = oneshot::channel();
        self.opening.insert(request, sender);
        receiver
    }

    /// A stored object was opened. What nobody waits for any more.
    pub(super) fn opened(&mut self, request: RequestNumber, carries: Vec<HeldId>) -> Vec<HeldId> {
        match self.opening.remove(&request) {
            Some(waiting) => waiting.send(carries).err().unwrap_or_default(),
            None => carries,
        }
    }
}
