//! The calls of one process to one actor, in order.
//!
//! A call waits until the actor is ready and what it needs is known, is handed over to the member that holds
//! the actor, and ends with an answer. When that member ends, calls that were handed over fail, unless they
//! are to be sent again: then they wait in front of all others.

use std::collections::{BTreeMap, VecDeque};

use cohabit_types::RankId;

use crate::actor_spec::ActorState;
use crate::errors::{ActorEnd, CallError};
use crate::frames::{CallRequest, OnRestart};
use crate::held::HeldId;
use crate::ids::CallNumber;
use crate::limits::MAX_CALLS;

/// The calls that have not ended.
#[derive(Debug)]
pub(crate) struct CallQueue {
    target: Target,
    /// Handed over to the member that is the target.
    handed_over: BTreeMap<CallNumber, HandedOver>,
    /// All later than those handed over.
    waiting: VecDeque<QueuedCall>,
}

/// A call that was not handed over, with the handles in its arguments.
#[derive(Debug)]
struct QueuedCall {
    call: CallNumber,
    request: CallRequest,
    carries: Vec<HeldId>,
    needs: Needs,
}

/// Whether everything is known that a call needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    Known,
    /// It waits, and all later calls behind it.
    Unknown,
}

#[derive(Debug)]
enum Target {
    /// Nobody takes calls now.
    None,
    Member(RankId),
    Ended(ActorEnd),
}

#[derive(Debug)]
enum HandedOver {
    /// It fails if the member ends; these handles were in its arguments.
    Once(Vec<HeldId>),
    /// It is sent again if the member ends.
    Repeatable(CallRequest, Vec<HeldId>),
}

/// What a change brings about, in order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum QueueEffect {
    /// Send the call.
    HandOver { to: RankId, call: CallNumber, request: CallRequest, carries: Vec<HeldId> },
    /// Ask for the end of a call that was handed over.
    Cancel { to: RankId, call: CallNumber },
    /// The call has ended without an answer. The handles in its arguments are no longer needed.
    Fail { call: CallNumber, error: CallError, carries: Vec<HeldId> },
}

impl CallQueue {
    /// An actor of which nothing is known yet.
    pub(crate) const fn new() -> CallQueue {
        CallQueue { target: Target::None, handed_over: BTreeMap::new(), waiting: VecDeque::new() }
    }

    /// Number of calls that have not ended.
    pub(crate) fn len(&self) -> usize {
        self.handed_over.len() + self.waiting.len()
    }

    /// Whether another call may be made.
    pub(crate) fn has_room(&self) -> bool {
        self.len() < MAX_CALLS
    }

    /// Makes a call, whose number is larger than all before; there has to be room for it.
    pub(crate) fn push(
        &mut self,
        call: CallNumber,
        (request, carries): (CallRequest, Vec<HeldId>),
        needs: Needs,
        effects: &mut Vec<QueueEffect>,
    ) {
        self.waiting.push_back(QueuedCall { call, request, carries, needs });
        self.advance(effects);
    }

    /// Everything is known that a call needs.
    pub(crate) fn needs_known(&mut self, call: CallNumber, effects: &mut Vec<QueueEffect>) {
        if let Ok(at) = self.waiting.binary_search_by_key(&call, |it| it.call) {
            self.waiting[at].needs = Needs::Known;
            self.advance(effects);
        }
    }

    /// A call that waits ends with this error.
    pub(crate) fn fail(&mut self, call: CallNumber, error: CallError, effects: &mut Vec<QueueEffect>) {
        if let Ok(at) = self.waiting.binary_search_by_key(&call, |it| it.call) {
            let carries = self.waiting.remove(at).map(|it| it.carries).unwrap_or_default();
            effects.push(QueueEffect::Fail { call, error, carries });
            // What waited behind it may go on.
            self.advance(effects);
        }
    }

    /// The coordinator said in which state the actor is.
    pub(crate) fn state(&mut self, state: ActorState, effects: &mut Vec<QueueEffect>) {
        let target = match state {
            ActorState::Pending { .. } | ActorState::Starting | ActorState::Restarting => Target::None,
            ActorState::Ready { member, .. } => Target::Member(member),
            ActorState::Ended(end) => Target::Ended(end),
        };
        let stays = match (&self.target, &target) {
            (Target::Member(old), Target::Member(new)) => old == new,
            (Target::Member(_), Target::None | Target::Ended(_)) => false,
            (Target::None | Target::Ended(_), _) => true,
        };
        if !stays && !matches!(target, Target::Ended(_)) {
            self.take_back(effects);
        }
        self.target = target;
        self.advance(effects);
    }

    /// A member has ended.
    pub(crate) fn member_ended(&mut self, member: RankId, effects: &mut Vec<QueueEffect>) {
        if matches!(self.target, Target::Member(target) if target == member) {
            self.take_back(effects);
            self.target = Target::None;
        }
    }

    /// An answer came: the handles that were in the arguments. Nothing if the call is not with this member.
    pub(crate) fn answered(&mut self, from: RankId, call: CallNumber) -> Option<Vec<HeldId>> {
        if !matches!(self.target, Target::Member(target) if target == from) {
            return None;
        }
        Some(self.handed_over.remove(&call)?.into_carries())
    }

    /// The caller needs no answer any more. A call that was handed over ends with its answer.
    pub(crate) fn cancel(&mut self, call: CallNumber, effects: &mut Vec<QueueEffect>) {
        self.fail(call, CallError::Cancelled, effects);
        if let (Some(handed_over), Target::Member(to)) = (self.handed_over.get_mut(&call), &self.target) {
            handed_over.forbid_repetition();
            effects.push(QueueEffect::Cancel { to: *to, call });
        }
    }

    /// Hands over or ends what waits, if the actor's state allows.
    fn advance(&mut self, effects: &mut Vec<QueueEffect>) {
        match &self.target {
            Target::None => {}
            Target::Member(to) => {
                while let Some(first) = self.waiting.pop_front_if(|first| first.needs == Needs::Known) {
                    let QueuedCall { call, request, carries, needs: _ } = first;
                    self.handed_over.insert(call, HandedOver::of(&request, &carries));
                    effects.push(QueueEffect::HandOver { to: *to, call, request, carries });
                }
            }
            Target::Ended(end) => {
                let handed_over = std::mem::take(&mut self.handed_over);
                let handed_over = handed_over.into_iter().map(|(call, it)| (call, it.into_carries()));
                let waiting = self.waiting.drain(..).map(|it| (it.call, it.carries));
                effects.extend(handed_over.chain(waiting).map(|(call, carries)| QueueEffect::Fail {
                    call,
                    error: CallError::Ended(end.clone()),
                    carries,
                }));
            }
        }
    }

    /// The member with the calls has ended.
    fn take_back(&mut self, effects: &mut Vec<QueueEffect>) {
        let mut repeated = VecDeque::new();
        for (call, handed_over) in std::mem::take(&mut self.handed_over) {
            match handed_over {
                HandedOver::Repeatable(request, carries) => {
                    repeated.push_back(QueuedCall { call, request, carries, needs: Needs::Known });
                }
                HandedOver::Once(carries) => {
                    effects.push(QueueEffect::Fail { call, error: CallError::Restarted, carries });
                }
            }
        }
        repeated.append(&mut self.waiting);
        self.waiting = repeated;
    }
}

impl HandedOver {
    fn of(request: &CallRequest, carries: &[HeldId]) -> HandedOver {
        match request.on_restart {
            OnRestart::Fail => HandedOver::Once(carries.to_vec()),
            OnRestart::Retry => HandedOver::Repeatable(request.clone(), carries.to_vec()),
        }
    }

    fn into_carries(self) -> Vec<HeldId> {
        match self {
            HandedOver::Once(carries) | HandedOver::Repeatable(_, carries) => carries,
        }
    }

    fn forbid_repetition(&mut self) {
        if let HandedOver::Repeatable(_, carries) = self {
            *self = HandedOver::Once(std::mem::take(carries));
        }
    }
}
