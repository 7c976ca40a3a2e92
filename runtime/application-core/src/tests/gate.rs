//! Reads overlap, writes are alone, nobody overtakes.

use super::kit::{effects, member, read, write};
use crate::gate::{CallGate, GateEffect, RunningCall};
use crate::{CallNumber, CallRequest, Ticket};

fn start(ticket: u64, request: CallRequest) -> GateEffect {
    GateEffect::Start { ticket: Ticket(ticket), request, carries: Vec::new() }
}

/// An open gate of two reads at the same time; the calls of member 2 have arrived.
fn gate(requests: &[CallRequest]) -> (CallGate, Vec<GateEffect>) {
    let mut gate = CallGate::new(2);
    let effects = effects(|it| {
        gate.open(it);
        for (number, request) in (1..).zip(requests) {
            gate.arrive(member(2), CallNumber(number), request.clone(), vec![], it);
        }
    });
    (gate, effects)
}

#[test]
fn reads_overlap_up_to_the_concurrency_and_a_write_waits_for_all() {
    let (mut gate, started) = gate(&[read(), read(), read(), write(), read()]);
    assert_eq!(started, [start(1, read()), start(2, read())]);
    assert_eq!(effects(|it| _ = gate.finish(Ticket(2), it)), [start(3, read())]);
    assert_eq!(effects(|it| _ = gate.finish(Ticket(3), it)), [], "a write waits: no read overtakes it");
    assert_eq!(effects(|it| _ = gate.finish(Ticket(1), it)), [start(4, write())]);
    assert_eq!(effects(|it| _ = gate.finish(Ticket(4), it)), [start(5, read())]);
}

#[test]
fn a_cancelled_call_never_starts_or_is_interrupted() {
    let (mut gate, started) = gate(&[write(), write(), read()]);
    assert_eq!(started, [start(1, write())]);
    let dropped = GateEffect::Drop { caller: member(2), call: CallNumber(2), carries: vec![] };
    assert_eq!(effects(|it| gate.cancel(member(2), CallNumber(2), it)), [dropped]);
    let interrupt = GateEffect::Interrupt { ticket: Ticket(1) };
    assert_eq!(effects(|it| gate.cancel(member(2), CallNumber(1), it)), [interrupt]);
    assert_eq!(effects(|it| gate.cancel(member(9), CallNumber(3), it)), [], "of another caller");
    let mut more = Vec::new();
    let ended = gate.finish(Ticket(1), &mut more);
    assert_eq!(ended, Some(RunningCall { caller: member(2), call: CallNumber(1) }));
    assert_eq!(more, [start(3, read())]);
}

#[test]
fn nothing_of_a_caller_that_has_ended_starts() {
    let (mut gate, _) = gate(&[write(), write()]);
    effects(|it| gate.arrive(member(3), CallNumber(1), read(), vec![], it));
    assert_eq!(
        effects(|it| gate.caller_ended(member(2), it)),
        [
            GateEffect::Interrupt { ticket: Ticket(1) },
            GateEffect::Drop { caller: member(2), call: CallNumber(2), carries: vec![] },
        ]
    );
    assert_eq!(effects(|it| _ = gate.finish(Ticket(1), it)), [start(3, read())]);
}

#[test]
fn a_shut_gate_starts_nothing() {
    let (mut gate, _) = gate(&[read(), read(), read()]);
    gate.shut();
    assert_eq!(effects(|it| _ = gate.finish(Ticket(1), it)), []);
    assert!(!gate.is_shut_and_idle());
    assert_eq!(effects(|it| _ = gate.finish(Ticket(2), it)), []);
    assert!(gate.is_shut_and_idle());
    assert_eq!(effects(|it| gate.open(it)), [start(3, read())]);
}
