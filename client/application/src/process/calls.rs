//! Calls that have not ended, and those for which there is no room yet.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use cohabit_application_core::{ActorId, CallError, CallNumber, CallRequest, TaskSpec, Ticket};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use super::member_state::MemberState;

/// What a call is made of, as the core gets it.
pub(crate) enum OutgoingCall {
    /// A method of an actor.
    Method { actor: ActorId, request: CallRequest },
    /// A task.
    Task(TaskSpec),
    /// A task that returns a stream.
    Stream(TaskSpec),
}

/// Calls with one target share its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CallTarget {
    /// The process to this actor.
    Actor(ActorId),
    /// This task of the process, or the rest of it, to all tasks.
    Tasks { caller: Option<Ticket> },
}

/// What happens to a call for which there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenFull {
    /// It waits.
    Wait,
    /// It fails.
    Fail,
}

/// The end of a call.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) result: Result<Bytes, CallError>,
    /// Handles in the value, which the process holds once more for it.
    pub(crate) carries: Vec<ActorId>,
}

/// An item of a stream that nobody has taken yet. There are few of them at a time: the core sees to it.
#[derive(Debug)]
pub(crate) struct StreamItem {
    pub(crate) item: Bytes,
    /// Handles in it, which the process holds once more for it.
    pub(crate) carries: Vec<ActorId>,
}

/// A call that the core has.
#[derive(Debug)]
pub(super) struct PendingCall {
    target: CallTarget,
    maker: MakerOutlet,
}

/// Where the maker of a call gets what comes of it.
#[derive(Debug)]
struct MakerOutlet {
    answer: oneshot::Sender<Answer>,
    /// For a stream; closed after its last item.
    items: Option<UnboundedSender<StreamItem>>,
}

/// Calls that wait for room, in order.
pub(super) type Backlog<H> = VecDeque<WaitingCall<H>>;

/// A call that waits for room.
pub(super) struct WaitingCall<H> {
    call: OutgoingCall,
    /// What it calls, and the handles in its arguments, which the core does not hold for it yet.
    holds: Vec<Arc<H>>,
    number: Arc<AtomicU64>,
    maker: MakerOutlet,
    accepted: oneshot::Sender<()>,
}

/// A call on its way, as its maker sees it.
#[derive(Debug)]
pub(crate) struct SentCall {
    pub(crate) target: CallTarget,
    pub(crate) answer: oneshot::Receiver<Answer>,
    items: Option<UnboundedReceiver<StreamItem>>,
    /// The number of the call, or 0 as long as it waits for room.
    number: Arc<AtomicU64>,
    /// Tells when it has room; none if it had from the start.
    pub(crate) accepted: Option<oneshot::Receiver<()>>,
}

impl OutgoingCall {
    const fn target(&self) -> CallTarget {
        match self {
            OutgoingCall::Method { actor, .. } => CallTarget::Actor(*actor),
            OutgoingCall::Task(spec) | OutgoingCall::Stream(spec) => {
                CallTarget::Tasks { caller: spec.caller }
            }
        }
    }

    const fn is_stream(&self) -> bool {
        match self {
            OutgoingCall::Method { .. } | OutgoingCall::Task(_) => false,
            OutgoingCall::Stream(_) => true,
        }
    }
}

impl SentCall {
    /// The next item of its stream; none after the last one.
    pub(crate) fn poll_item(&mut self, context: &mut Context<'_>) -> Poll<Option<StreamItem>> {
        self.items.as_mut().map_or(Poll::Ready(None), |items| items.poll_recv(context))
    }

    /// The items that nobody has taken; no more come.
    pub(crate) fn take_items(&mut self) -> Vec<StreamItem> {
        let Some(mut items) = self.items.take() else { return Vec::new() };
        items.close();
        std::iter::from_fn(|| items.try_recv().ok()).collect()
    }
}

impl<H> MemberState<H> {
    /// Makes a call. `holds` are what it calls and the handles in its arguments.
    ///
    /// # Errors
    /// If the call may not be made.
    pub(crate) fn call(
        &mut self,
        call: OutgoingCall,
        holds: Vec<Arc<H>>,
        when_full: WhenFull,
    ) -> Result<SentCall, CallError> {
        let (target, (sender, answer)) = (call.target(), oneshot::channel());
        let (item_sender, items) = call.is_stream().then(unbounded_channel).unzip();
        let maker = MakerOutlet { answer: sender, items: item_sender };
        if self.backlogs.contains_key(&target) || !self.core_has_room(&call) {
            if when_full == WhenFull::Fail {
                self.unneeded.extend(holds);
                return Err(CallError::Full);
            }
            let (accept, accepted) = oneshot::channel();
            let number = Arc::new(AtomicU64::new(0));
            let waiting = WaitingCall { call, holds, number: Arc::clone(&number), maker, accepted: accept };
            self.backlogs.entry(target).or_default().push_back(waiting);
            return Ok(SentCall { target, answer, items, number, accepted: Some(accepted) });
        }
        self.unneeded.extend(holds);
        let CallNumber(number) = self.pass_to_core(call)?;
        self.calls.insert(CallNumber(number), PendingCall { target, maker });
        let number = Arc::new(AtomicU64::new(number));
        Ok(SentCall { target, answer, items, number, accepted: None })
    }

    fn core_has_room(&self, call: &OutgoingCall) -> bool {
        match call {
            OutgoingCall::Method { actor, .. } => self.member.has_room(*actor),
            OutgoingCall::Task(spec) | OutgoingCall::Stream(spec) => {
                self.member.has_task_room(spec.caller, spec.arguments.len())
            }
        }
    }

    fn pass_to_core(&mut self, call: OutgoingCall) -> Result<CallNumber, CallError> {
        match call {
            OutgoingCall::Method { actor, request } => self.member.call(actor, request, &mut self.effects),
            OutgoingCall::Task(spec) | OutgoingCall::Stream(spec) => {
                self.member.run_task(spec, &mut self.effects)
            }
        }
    }

    /// Nobody waits for the answer of a call any more.
    pub(crate) fn cancel(&mut self, call: &SentCall) {
        match (call.number.load(Ordering::Relaxed), call.target) {
            (0, target) => {
                let Some(backlog) = self.backlogs.get_mut(&target) else { return };
                if let Some(at) = backlog.iter().position(|it| Arc::ptr_eq(&it.number, &call.number)) {
                    self.unneeded.extend(backlog.remove(at).into_iter().flat_map(|it| it.holds));
                }
                // A call behind it may be smaller.
                self.admit(target);
            }
            (number, CallTarget::Actor(actor)) => {
                self.member.cancel(actor, CallNumber(number), &mut self.effects);
            }
            (number, CallTarget::Tasks { .. }) => {
                self.member.cancel_task(CallNumber(number), &mut self.effects);
            }
        }
    }

    /// The user has taken the next item of a stream.
    pub(crate) fn read(&mut self, call: &SentCall) {
        self.member.read(CallNumber(call.number.load(Ordering::Relaxed)), &mut self.effects);
    }

    /// An item of a stream has arrived.
    pub(super) fn pass_item(&mut self, call: CallNumber, item: StreamItem) {
        let items = self.calls.get(&call).and_then(|pending| pending.maker.items.as_ref());
        let unread = match items {
            Some(items) => items.send(item).err().map(|unread| unread.0),
            None => Some(item),
        };
        self.release(unread.into_iter().flat_map(|unread| unread.carries));
    }

    /// A call of this process has ended.
    pub(super) fn finish_call(
        &mut self,
        call: CallNumber,
        result: Result<Bytes, CallError>,
        carries: Vec<ActorId>,
    ) {
        let Some(pending) = self.calls.remove(&call) else { return self.release(carries) };
        if let Err(unread) = pending.maker.answer.send(Answer { result, carries }) {
            self.release(unread.carries);
        }
        self.admit(pending.target);
    }

    /// Makes the calls that wait, as far as there is room.
    fn admit(&mut self, target: CallTarget) {
        while let Some(backlog) = self.backlogs.get(&target) {
            let Some(waiting) = backlog.front() else {
                self.backlogs.remove(&target);
                return;
            };
            if !self.core_has_room(&waiting.call) {
                return;
            }
            let Some(waiting) = self.backlogs.get_mut(&target).and_then(VecDeque::pop_front) else { return };
            match self.pass_to_core(waiting.call) {
                Ok(number) => {
                    waiting.number.store(number.0, Ordering::Relaxed);
                    self.calls.insert(number, PendingCall { target, maker: waiting.maker });
                }
                Err(error) => {
                    // It carries nothing, and its maker may have gone.
                    let _told = waiting.maker.answer.send(Answer { result: Err(error), carries: Vec::new() });
                }
            }
            // Its maker may wait for the answer alone.
            let _told = waiting.accepted.send(());
            self.unneeded.extend(waiting.holds);
        }
    }
}
