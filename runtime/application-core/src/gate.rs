//! When the calls of an actor start: strictly in order of arrival, whoever made them.
//!
//! `&self` methods run beside each other up to the concurrency of the actor, `&mut self` methods alone. No
//! call overtakes another, so a `&mut self` method never starves.

use std::collections::BTreeMap;

use cohabit_types::RankId;

use crate::frames::{CallRequest, MethodAccess};
use crate::held::HeldId;
use crate::ids::{CallNumber, Ticket};

/// The calls that have arrived and not ended.
#[derive(Debug)]
pub(crate) struct CallGate {
    last: Ticket,
    concurrency: usize,
    position: Position,
    waiting: BTreeMap<Ticket, WaitingCall>,
    running: BTreeMap<Ticket, RunningCall>,
    exclusive: Option<Ticket>,
    tickets: BTreeMap<(RankId, CallNumber), Ticket>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    Open,
    /// The actor is being constructed.
    Shut,
}

#[derive(Debug)]
struct WaitingCall {
    caller: RankId,
    call: CallNumber,
    request: CallRequest,
    carries: Vec<HeldId>,
}

/// Who waits for the answer of a running call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunningCall {
    pub(crate) caller: RankId,
    pub(crate) call: CallNumber,
}

/// What a change brings about, in order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum GateEffect {
    Start {
        ticket: Ticket,
        request: CallRequest,
        carries: Vec<HeldId>,
    },
    /// A running call should end.
    Interrupt {
        ticket: Ticket,
    },
    /// A call will never start.
    Drop {
        caller: RankId,
        call: CallNumber,
        carries: Vec<HeldId>,
    },
}

impl CallGate {
    /// A gate that is shut: the actor is not constructed yet.
    pub(crate) const fn new(concurrency: u32) -> CallGate {
        CallGate {
            last: Ticket(0),
            concurrency: if concurrency == 0 { 1 } else { concurrency as usize },
            position: Position::Shut,
            waiting: BTreeMap::new(),
            running: BTreeMap::new(),
            exclusive: None,
            tickets: BTreeMap::new(),
        }
    }

    /// A call has arrived.
    pub(crate) fn arrive(
        &mut self,
        caller: RankId,
        call: CallNumber,
        request: CallRequest,
        carries: Vec<HeldId>,
        effects: &mut Vec<GateEffect>,
    ) {
        self.last = Ticket(self.last.0 + 1);
        self.tickets.insert((caller, call), self.last);
        self.waiting.insert(self.last, WaitingCall { caller, call, request, carries });
        self.advance(effects);
    }

    /// A running call has ended: whose it was.
    pub(crate) fn finish(&mut self, ticket: Ticket, effects: &mut Vec<GateEffect>) -> Option<RunningCall> {
        let ended = self.running.remove(&ticket)?;
        if self.exclusive == Some(ticket) {
            self.exclusive = None;
        }
        self.forget(ended.caller, ended.call, ticket);
        self.advance(effects);
        Some(ended)
    }

    /// The caller needs no answer any more.
    pub(crate) fn cancel(&mut self, caller: RankId, call: CallNumber, effects: &mut Vec<GateEffect>) {
        let Some(ticket) = self.tickets.get(&(caller, call)).copied() else { return };
        self.end(ticket, effects);
        self.advance(effects);
    }

    /// A caller has ended: none of its calls starts any more.
    pub(crate) fn caller_ended(&mut self, caller: RankId, effects: &mut Vec<GateEffect>) {
        let all = (caller, CallNumber(0))..=(caller, CallNumber(u64::MAX));
        let tickets: Vec<Ticket> = self.tickets.range(all).map(|(_, ticket)| *ticket).collect();
        for ticket in tickets {
            self.end(ticket, effects);
        }
        self.advance(effects);
    }

    /// Nothing starts until the gate is opened.
    pub(crate) const fn shut(&mut self) {
        self.position = Position::Shut;
    }

    pub(crate) fn open(&mut self, effects: &mut Vec<GateEffect>) {
        self.position = Position::Open;
        self.advance(effects);
    }

    /// Whether the gate is shut and nothing runs any more.
    pub(crate) fn is_shut_and_idle(&self) -> bool {
        self.position == Position::Shut && self.running.is_empty()
    }

    /// Drops a call that waits, interrupts one that runs.
    fn end(&mut self, ticket: Ticket, effects: &mut Vec<GateEffect>) {
        if let Some(WaitingCall { caller, call, carries, request: _ }) = self.waiting.remove(&ticket) {
            self.forget(caller, call, ticket);
            effects.push(GateEffect::Drop { caller, call, carries });
        } else if self.running.contains_key(&ticket) {
            effects.push(GateEffect::Interrupt { ticket });
        }
    }

    fn forget(&mut self, caller: RankId, call: CallNumber, ticket: Ticket) {
        if self.tickets.get(&(caller, call)) == Some(&ticket) {
            self.tickets.remove(&(caller, call));
        }
    }

    fn advance(&mut self, effects: &mut Vec<GateEffect>) {
        while let Some(first) = self.waiting.first_entry() {
            let may_start = match first.get().request.access {
                MethodAccess::Shared => self.exclusive.is_none() && self.running.len() < self.concurrency,
                MethodAccess::Exclusive => self.running.is_empty(),
            };
            if !may_start || self.position == Position::Shut {
                break;
            }
            let (ticket, WaitingCall { caller, call, request, carries }) = first.remove_entry();
            if request.access == MethodAccess::Exclusive {
                self.exclusive = Some(ticket);
            }
            self.running.insert(ticket, RunningCall { caller, call });
            effects.push(GateEffect::Start { ticket, request, carries });
        }
    }
}
