//! Calls that have not ended, and those for which there is no room yet. A call ends with an answer to its
//! maker, or has a reference from the start, whose value is known then.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use cohabit_application_core::{
    ActorId, CallError, CallNumber, CallRequest, CallValue, HeldId, ObjectId, TaskSpec, Ticket,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use super::member_state::MemberState;
use super::reference_table::CallLimit;
use super::running_task::UnendedCall;

/// What a call is made of, as the core gets it.
pub(crate) enum OutgoingCall {
    /// A method of an actor.
    Method { actor: ActorId, request: CallRequest, carries: Vec<HeldId> },
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
    pub(crate) result: Result<CallValue, CallError>,
    /// Handles in the value, which the process holds once more for it.
    pub(crate) carries: Vec<HeldId>,
}

/// An item of a stream that nobody has taken yet. There are few of them at a time: the core sees to it.
#[derive(Debug)]
pub(crate) struct StreamItem {
    pub(crate) item: Bytes,
    /// Handles in it, which the process holds once more for it.
    pub(crate) carries: Vec<HeldId>,
}

/// A call that the core has.
#[derive(Debug)]
pub(super) struct PendingCall {
    target: CallTarget,
    outlet: CallOutlet,
}

/// Where what comes of a call goes.
#[derive(Debug)]
enum CallOutlet {
    Maker(MakerOutlet),
    /// To its reference.
    Reference {
        object: ObjectId,
        limit: Option<CallLimit>,
    },
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
    outlet: WaitingOutlet,
}

/// Who wants a call that waits for room.
enum WaitingOutlet {
    /// Who is told that it has room, and gets what comes of it.
    Maker(MakerOutlet, oneshot::Sender<()>),
    /// Who gets its reference as soon as it has room.
    Reference(ReferenceTerms, oneshot::Sender<ReferenceReply>),
}

/// The reference of a call, or why the call could not be made.
type ReferenceReply = Result<ObjectId, CallError>;

/// A call that is to have a reference.
#[derive(Debug)]
pub(crate) struct ReferenceTerms {
    pub(crate) counts: UnendedCall,
    pub(crate) limit: Option<CallLimit>,
}

/// A call that is to have a reference, after it was passed on.
#[derive(Debug)]
pub(crate) enum StartedCall {
    /// It was made. The process holds its reference once.
    Made(ObjectId),
    /// It waits for room.
    Waits(RoomTicket),
}

/// A call that waits for room, as its maker sees it.
#[derive(Debug)]
pub(crate) struct RoomTicket {
    target: CallTarget,
    number: Arc<AtomicU64>,
    pub(crate) reply: oneshot::Receiver<ReferenceReply>,
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
        if self.has_to_wait(&call) {
            let (accept, accepted) = oneshot::channel();
            let outlet = WaitingOutlet::Maker(maker, accept);
            let number = self.let_wait(call, holds, outlet, when_full)?;
            return Ok(SentCall { target, answer, items, number, accepted: Some(accepted) });
        }
        self.unneeded.extend(holds);
        let number = self.pass_to_core(call)?;
        self.calls.insert(number, PendingCall { target, outlet: CallOutlet::Maker(maker) });
        let number = Arc::new(AtomicU64::new(number.0));
        Ok(SentCall { target, answer, items, number, accepted: None })
    }

    /// Makes a call that has a reference. `holds` are what it calls and the handles in its arguments.
    ///
    /// # Errors
    /// If the call may not be made.
    pub(crate) fn start_call(
        &mut self,
        call: OutgoingCall,
        holds: Vec<Arc<H>>,
        when_full: WhenFull,
        terms: ReferenceTerms,
    ) -> Result<StartedCall, CallError> {
        if self.has_to_wait(&call) {
            let (target, (sender, reply)) = (call.target(), oneshot::channel());
            let outlet = WaitingOutlet::Reference(terms, sender);
            let number = self.let_wait(call, holds, outlet, when_full)?;
            return Ok(StartedCall::Waits(RoomTicket { target, number, reply }));
        }
        self.unneeded.extend(holds);
        self.pass_for_reference(call, terms).map(StartedCall::Made)
    }

    fn pass_for_reference(
        &mut self,
        call: OutgoingCall,
        terms: ReferenceTerms,
    ) -> Result<ObjectId, CallError> {
        let (target, ReferenceTerms { counts, limit }) = (call.target(), terms);
        let (number, object) = match call {
            OutgoingCall::Method { actor, request, carries } => {
                self.member.call_for_reference(actor, request, carries, &mut self.effects)?
            }
            OutgoingCall::Task(spec) | OutgoingCall::Stream(spec) => {
                self.member.run_task_for_reference(spec, &mut self.effects)?
            }
        };
        self.calls.insert(number, PendingCall { target, outlet: CallOutlet::Reference { object, limit } });
        if self.references.begin(object, counts, limit) {
            self.has_new_deadline = true;
        }
        Ok(object)
    }

    fn has_to_wait(&self, call: &OutgoingCall) -> bool {
        self.backlogs.contains_key(&call.target()) || !self.core_has_room(call)
    }

    fn let_wait(
        &mut self,
        call: OutgoingCall,
        holds: Vec<Arc<H>>,
        outlet: WaitingOutlet,
        when_full: WhenFull,
    ) -> Result<Arc<AtomicU64>, CallError> {
        if when_full == WhenFull::Fail {
            self.unneeded.extend(holds);
            return Err(CallError::Full);
        }
        let (target, number) = (call.target(), Arc::new(AtomicU64::new(0)));
        let waiting = WaitingCall { call, holds, number: Arc::clone(&number), outlet };
        self.backlogs.entry(target).or_default().push_back(waiting);
        Ok(number)
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
            OutgoingCall::Method { actor, request, carries } => {
                self.member.call(actor, request, carries, &mut self.effects)
            }
            OutgoingCall::Task(spec) | OutgoingCall::Stream(spec) => {
                self.member.run_task(spec, &mut self.effects)
            }
        }
    }

    /// Nobody waits for the answer of a call any more.
    pub(crate) fn cancel(&mut self, call: &SentCall) {
        match (call.number.load(Ordering::Relaxed), call.target) {
            (0, target) => self.leave_backlog(target, &call.number),
            (number, CallTarget::Actor(actor)) => {
                self.member.cancel(actor, CallNumber(number), &mut self.effects);
            }
            (number, CallTarget::Tasks { .. }) => {
                self.member.cancel_task(CallNumber(number), &mut self.effects);
            }
        }
    }

    /// Nobody waits for the reference of a call any more.
    pub(super) fn cancel_start(&mut self, ticket: &mut RoomTicket) {
        ticket.reply.close();
        match ticket.reply.try_recv() {
            Ok(made) => self.release(made.ok().map(HeldId::Object)),
            Err(_) => self.leave_backlog(ticket.target, &ticket.number),
        }
    }

    fn leave_backlog(&mut self, target: CallTarget, number: &Arc<AtomicU64>) {
        let Some(backlog) = self.backlogs.get_mut(&target) else { return };
        if let Some(at) = backlog.iter().position(|it| Arc::ptr_eq(&it.number, number)) {
            self.unneeded.extend(backlog.remove(at).into_iter().flat_map(|it| it.holds));
        }
        // A call behind it may be smaller.
        self.admit(target);
    }

    /// The user has taken the next item of a stream.
    pub(crate) fn read(&mut self, call: &SentCall) {
        self.member.read(CallNumber(call.number.load(Ordering::Relaxed)), &mut self.effects);
    }

    /// An item of a stream has arrived.
    pub(super) fn pass_item(&mut self, call: CallNumber, item: StreamItem) {
        let items = self.calls.get(&call).and_then(|pending| match &pending.outlet {
            CallOutlet::Maker(maker) => maker.items.as_ref(),
            CallOutlet::Reference { .. } => None,
        });
        let unread = match items {
            Some(items) => items.send(item).err().map(|unread| unread.0),
            None => Some(item),
        };
        self.release(unread.into_iter().flat_map(|unread| unread.carries));
    }

    /// A call of this process without a reference has ended.
    pub(super) fn finish_call(
        &mut self,
        call: CallNumber,
        result: Result<CallValue, CallError>,
        carries: Vec<HeldId>,
    ) {
        let Some(PendingCall { target, outlet }) = self.calls.remove(&call) else {
            return self.release(carries);
        };
        match outlet {
            CallOutlet::Maker(maker) => {
                if let Err(unread) = maker.answer.send(Answer { result, carries }) {
                    self.release(unread.carries);
                }
            }
            // It failed before, as when its time was over.
            CallOutlet::Reference { object, limit } => {
                self.references.end_call(object, limit);
                self.release(carries);
            }
        }
        self.wake_caller(target);
        self.admit(target);
    }

    /// The value of a reference is known: `call` was its call, if it was one of this process.
    pub(super) fn object_ready(&mut self, object: ObjectId, call: Option<CallNumber>) {
        self.references.wake(object);
        // Its caller waits for it no longer, also if the call itself goes on.
        self.references.caller_of(object).into_iter().for_each(|caller| self.tasks.wake(caller));
        let Some(ended) = call.and_then(|call| self.calls.remove(&call)) else { return };
        if let CallOutlet::Reference { object, limit } = ended.outlet {
            self.references.end_call(object, limit);
        }
        self.wake_caller(ended.target);
        self.admit(ended.target);
    }

    /// The task that has made a call is polled again.
    fn wake_caller(&self, target: CallTarget) {
        if let CallTarget::Tasks { caller: Some(caller) } = target {
            self.tasks.wake(caller);
        }
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
            match waiting.outlet {
                WaitingOutlet::Maker(maker, accepted) => {
                    let made = self.pass_to_core(waiting.call);
                    if let Ok(CallNumber(number)) = &made {
                        waiting.number.store(*number, Ordering::Relaxed);
                    }
                    self.tell_maker(made, target, maker, accepted);
                }
                WaitingOutlet::Reference(terms, reply) => {
                    let made = self.pass_for_reference(waiting.call, terms);
                    let unread = reply.send(made).err().and_then(Result::ok);
                    self.release(unread.map(HeldId::Object));
                }
            }
            self.unneeded.extend(waiting.holds);
        }
    }

    fn tell_maker(
        &mut self,
        made: Result<CallNumber, CallError>,
        target: CallTarget,
        maker: MakerOutlet,
        accepted: oneshot::Sender<()>,
    ) {
        match made {
            Ok(number) => {
                self.calls.insert(number, PendingCall { target, outlet: CallOutlet::Maker(maker) });
            }
            Err(error) => {
                // It carries nothing, and its maker may have gone.
                let _told = maker.answer.send(Answer { result: Err(error), carries: Vec::new() });
            }
        }
        // Its maker may wait for the answer alone.
        let _told = accepted.send(());
    }
}
