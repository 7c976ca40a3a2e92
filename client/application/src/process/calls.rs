//! Calls that have not ended, and those for which the queue to their actor has no room yet.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use cohabit_application_core::{ActorId, CallError, CallNumber, CallRequest};
use tokio::sync::oneshot;

use super::member_state::MemberState;

/// The end of a call.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) result: Result<Bytes, CallError>,
    /// Handles in the value, which the process holds once more for it.
    pub(crate) carries: Vec<ActorId>,
}

/// A call that the core has.
#[derive(Debug)]
pub(super) struct PendingCall {
    actor: ActorId,
    answer: oneshot::Sender<Answer>,
}

/// Calls that wait for room, in order.
pub(super) type Backlog<H> = VecDeque<WaitingCall<H>>;

/// A call that waits for room.
pub(super) struct WaitingCall<H> {
    request: CallRequest,
    /// What it calls, and the handles in its arguments, which the core does not hold for it yet.
    holds: Vec<Arc<H>>,
    number: Arc<AtomicU64>,
    answer: oneshot::Sender<Answer>,
    accepted: oneshot::Sender<()>,
}

/// A call on its way, as its maker sees it.
#[derive(Debug)]
pub(crate) struct SentCall {
    pub(crate) actor: ActorId,
    pub(crate) answer: oneshot::Receiver<Answer>,
    /// The number of the call, or 0 as long as it waits for room.
    number: Arc<AtomicU64>,
    /// Tells when it has room; none if it had from the start.
    pub(crate) accepted: Option<oneshot::Receiver<()>>,
}

impl<H> MemberState<H> {
    /// Whether a call would not have to wait for room.
    pub(crate) fn has_room(&self, actor: ActorId) -> bool {
        self.member.has_room(actor) && !self.backlogs.contains_key(&actor)
    }

    /// Makes a call, or lets it wait for room. `holds` are what it calls and the handles in its arguments.
    ///
    /// # Errors
    /// If the call may not be made.
    pub(crate) fn call(
        &mut self,
        actor: ActorId,
        request: CallRequest,
        holds: Vec<Arc<H>>,
    ) -> Result<SentCall, CallError> {
        let (sender, answer) = oneshot::channel();
        if !self.has_room(actor) {
            let (accept, accepted) = oneshot::channel();
            let number = Arc::new(AtomicU64::new(0));
            let waiting =
                WaitingCall { request, holds, number: Arc::clone(&number), answer: sender, accepted: accept };
            self.backlogs.entry(actor).or_default().push_back(waiting);
            return Ok(SentCall { actor, answer, number, accepted: Some(accepted) });
        }
        self.unneeded.extend(holds);
        let CallNumber(number) = self.member.call(actor, request, &mut self.effects)?;
        self.calls.insert(CallNumber(number), PendingCall { actor, answer: sender });
        Ok(SentCall { actor, answer, number: Arc::new(AtomicU64::new(number)), accepted: None })
    }

    /// Nobody waits for the answer of a call any more.
    pub(crate) fn cancel(&mut self, call: &SentCall) {
        match call.number.load(Ordering::Relaxed) {
            0 => {
                let Some(backlog) = self.backlogs.get_mut(&call.actor) else { return };
                if let Some(at) = backlog.iter().position(|it| Arc::ptr_eq(&it.number, &call.number)) {
                    self.unneeded.extend(backlog.remove(at).into_iter().flat_map(|it| it.holds));
                }
                if backlog.is_empty() {
                    self.backlogs.remove(&call.actor);
                }
            }
            number => self.member.cancel(call.actor, CallNumber(number), &mut self.effects),
        }
    }

    /// A call of this process has ended.
    pub(super) fn finish_call(
        &mut self,
        call: CallNumber,
        result: Result<Bytes, CallError>,
        carries: Vec<ActorId>,
    ) {
        let Some(pending) = self.calls.remove(&call) else { return self.release(carries) };
        if let Err(unread) = pending.answer.send(Answer { result, carries }) {
            self.release(unread.carries);
        }
        self.admit(pending.actor);
    }

    /// Makes the calls that wait, as far as there is room.
    fn admit(&mut self, actor: ActorId) {
        while self.member.has_room(actor)
            && let Some(backlog) = self.backlogs.get_mut(&actor)
        {
            let Some(waiting) = backlog.pop_front() else {
                self.backlogs.remove(&actor);
                return;
            };
            match self.member.call(actor, waiting.request, &mut self.effects) {
                Ok(number) => {
                    waiting.number.store(number.0, Ordering::Relaxed);
                    self.calls.insert(number, PendingCall { actor, answer: waiting.answer });
                }
                Err(error) => {
                    // It carries nothing, and its maker may have gone.
                    let _told = waiting.answer.send(Answer { result: Err(error), carries: Vec::new() });
                }
            }
            // Its maker may wait for the answer alone.
            let _told = waiting.accepted.send(());
            self.unneeded.extend(waiting.holds);
        }
    }
}
