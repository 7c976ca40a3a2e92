//! Calls wait, are handed over in order, and end once.

use super::kit::{effects, handle, member, retried, write};
use crate::call_queue::{CallQueue, Needs, QueueEffect};
use crate::limits::MAX_CALLS;
use crate::{ActorEnd, ActorState, CallError, CallNumber, CallRequest, IncarnationNumber};

fn ready(job: u64) -> ActorState {
    ActorState::Ready { member: member(job), incarnation: IncarnationNumber(1) }
}

fn hand_over(job: u64, call: u64, request: CallRequest) -> QueueEffect {
    QueueEffect::HandOver { to: member(job), call: CallNumber(call), request, carries: Vec::new() }
}

fn fail(call: u64, error: CallError) -> QueueEffect {
    QueueEffect::Fail { call: CallNumber(call), error, carries: vec![] }
}

#[test]
fn calls_wait_until_the_actor_is_ready() {
    let mut queue = CallQueue::new();
    assert_eq!(effects(|it| queue.push(CallNumber(1), (write(), vec![]), Needs::Known, it)), []);
    assert_eq!(effects(|it| queue.state(ActorState::Starting, it)), []);
    assert_eq!(effects(|it| queue.state(ready(3), it)), [hand_over(3, 1, write())]);
    assert_eq!(
        effects(|it| queue.push(CallNumber(2), (write(), vec![]), Needs::Known, it)),
        [hand_over(3, 2, write())]
    );
    assert_eq!(queue.answered(member(4), CallNumber(1)), None, "somebody else");
    assert_eq!(queue.answered(member(3), CallNumber(1)), Some(vec![]));
    assert_eq!(queue.answered(member(3), CallNumber(1)), None, "answered before");
}

#[test]
fn after_a_restart_marked_calls_go_first_and_the_others_have_failed() {
    let mut queue = CallQueue::new();
    effects(|it| queue.state(ready(3), it));
    for (number, request) in [(1, retried()), (2, write()), (3, retried())] {
        effects(|it| queue.push(CallNumber(number), (request, vec![]), Needs::Known, it));
    }
    assert_eq!(effects(|it| queue.member_ended(member(3), it)), [fail(2, CallError::Restarted)]);
    assert_eq!(effects(|it| queue.state(ActorState::Restarting, it)), []);
    effects(|it| queue.push(CallNumber(4), (write(), vec![]), Needs::Known, it));
    assert_eq!(
        effects(|it| queue.state(ready(5), it)),
        [hand_over(5, 1, retried()), hand_over(5, 3, retried()), hand_over(5, 4, write())]
    );
}

#[test]
fn another_incarnation_in_the_same_process_changes_nothing() {
    let mut queue = CallQueue::new();
    effects(|it| queue.state(ready(3), it));
    effects(|it| queue.push(CallNumber(1), (write(), vec![]), Needs::Known, it));
    let second = ActorState::Ready { member: member(3), incarnation: IncarnationNumber(2) };
    assert_eq!(effects(|it| queue.state(second, it)), []);
    assert_eq!(queue.len(), 1);
}

#[test]
fn the_end_of_the_actor_ends_all_calls_and_later_ones() {
    let mut queue = CallQueue::new();
    effects(|it| queue.push(CallNumber(1), (write(), vec![]), Needs::Known, it));
    let end = ActorEnd::GivenUp("its process ended with 9".to_owned());
    let error = CallError::Ended(end.clone());
    assert_eq!(effects(|it| queue.state(ActorState::Ended(end), it)), [fail(1, error.clone())]);
    assert_eq!(
        effects(|it| queue.push(CallNumber(2), (write(), vec![]), Needs::Known, it)),
        [fail(2, error)]
    );
}

#[test]
fn a_cancelled_call_is_dropped_or_asked_to_end_and_not_sent_again() {
    let mut queue = CallQueue::new();
    effects(|it| queue.push(CallNumber(1), (write(), vec![handle(8)]), Needs::Known, it));
    let dropped =
        QueueEffect::Fail { call: CallNumber(1), error: CallError::Cancelled, carries: vec![handle(8)] };
    assert_eq!(effects(|it| queue.cancel(CallNumber(1), it)), [dropped]);
    effects(|it| queue.state(ready(3), it));
    effects(|it| queue.push(CallNumber(2), (retried(), vec![]), Needs::Known, it));
    let cancel = QueueEffect::Cancel { to: member(3), call: CallNumber(2) };
    assert_eq!(effects(|it| queue.cancel(CallNumber(2), it)), [cancel]);
    assert_eq!(effects(|it| queue.member_ended(member(3), it)), [fail(2, CallError::Restarted)]);
}

#[test]
fn a_queue_has_room_for_so_many_calls() {
    let mut queue = CallQueue::new();
    for number in 0..MAX_CALLS as u64 {
        assert!(queue.has_room());
        effects(|it| queue.push(CallNumber(number), (write(), vec![]), Needs::Known, it));
    }
    assert!(!queue.has_room());
    effects(|it| queue.cancel(CallNumber(5), it));
    assert!(queue.has_room());
}
