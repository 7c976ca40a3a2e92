//! One process: lends go out before handles, each call ends once, a panic constructs anew.

use bytes::Bytes;

use super::kit::{
    MAIN, ROOT, actor, actor_spec, carried, effects, gang, handle, inline, member, read, spec, write,
};
use crate::{
    ActorSpec, ActorState, CallError, CallNumber, CallRequest, CallValue, Carried, Construction, CreateError,
    FromCoordinator, IncarnationNumber, MAX_ARGUMENTS, MAX_CALLS, Member, MemberEffect, OnPanic,
    RequestNumber, Ticket, ToCallee, ToCaller, ToCoordinator,
};

const CALLEE: cohabit_types::RankId = member(3);

fn to_coordinator(frame: ToCoordinator) -> MemberEffect {
    MemberEffect::ToCoordinator(frame)
}

fn lend(of: u64, to: cohabit_types::RankId) -> MemberEffect {
    to_coordinator(ToCoordinator::Lend { held: handle(of), to })
}

fn release(of: u64, lender: cohabit_types::RankId) -> MemberEffect {
    to_coordinator(ToCoordinator::Release { held: handle(of), settled: vec![(lender, 1)] })
}

/// A main that holds actor 1 and actor 2.
fn main_with_two_actors() -> Member {
    let mut main = Member::new(MAIN, ROOT);
    for number in [1, 2] {
        let request = effects(|it| _ = main.create(spec(), vec![], it));
        assert_eq!(request.len(), 1);
        let created = FromCoordinator::Created { request: RequestNumber(number), result: Ok(actor(number)) };
        effects(|it| main.receive(created, it));
    }
    main
}

fn state(main: &mut Member, of: u64, state: ActorState) -> Vec<MemberEffect> {
    effects(|it| main.receive(FromCoordinator::State { actor: actor(of), state }, it))
}

fn ready(main: &mut Member, of: u64) -> Vec<MemberEffect> {
    state(main, of, ActorState::Ready { member: CALLEE, incarnation: IncarnationNumber(1) })
}

/// The process of actor 1, constructed.
fn callee(carries: Vec<Carried>) -> Member {
    callee_that(OnPanic::Reconstruct, carries)
}

fn callee_that(on_panic: OnPanic, carries: Vec<Carried>) -> Member {
    let mut callee = Member::new(CALLEE, ROOT);
    let construction = Construction {
        actor: actor(1),
        kind: 7,
        incarnation: IncarnationNumber(1),
        concurrency: 2,
        on_panic,
        arguments: Bytes::from_static(b"new"),
        needs: Vec::new(),
        carries,
    };
    effects(|it| callee.receive(FromCoordinator::Construct(construction), it));
    let incarnation = IncarnationNumber(1);
    assert_eq!(
        effects(|it| callee.constructed(Ok(()), it)),
        [to_coordinator(ToCoordinator::Constructed { incarnation })]
    );
    callee
}

fn arrive(callee: &mut Member, call: u64, request: CallRequest) -> Vec<MemberEffect> {
    arrive_with(callee, call, request, vec![])
}

fn arrive_with(
    callee: &mut Member,
    call: u64,
    request: CallRequest,
    carries: Vec<Carried>,
) -> Vec<MemberEffect> {
    let frame = ToCallee::Call { actor: actor(1), call: CallNumber(call), request, carries };
    effects(|it| callee.receive_from_caller(MAIN, frame, it))
}

fn answer(call: u64, result: Result<CallValue, CallError>, carries: Vec<Carried>) -> ToCaller {
    ToCaller::Answer { actor: actor(1), call: CallNumber(call), result, carries }
}

#[test]
fn a_call_watches_its_actor_lends_before_it_goes_out_and_ends_with_the_answer() {
    let mut main = main_with_two_actors();
    let request = write();
    let carries = vec![handle(2)];
    let call = effects(|it| assert_eq!(main.call(actor(1), request.clone(), carries, it), Ok(CallNumber(1))));
    assert_eq!(call, [to_coordinator(ToCoordinator::Watch { actor: actor(1) })]);
    let frame = ToCallee::Call { actor: actor(1), call: CallNumber(1), request, carries: vec![carried(2)] };
    assert_eq!(ready(&mut main, 1), [lend(2, CALLEE), MemberEffect::ToCallee { to: CALLEE, frame }]);
    assert_eq!(effects(|it| main.release(handle(1), it)), [], "the call holds its actor");
    assert_eq!(effects(|it| main.release(handle(2), it)), [], "and what it carries");
    let value = Ok(inline("value"));
    assert_eq!(
        effects(|it| main.receive_from_callee(CALLEE, answer(1, value.clone(), vec![]), it)),
        [
            MemberEffect::Finish { call: CallNumber(1), result: value, carries: vec![] },
            release(2, ROOT),
            release(1, ROOT),
        ]
    );
    assert!(main.is_idle());
}

#[test]
fn a_value_with_a_handle_is_lent_by_its_maker_and_held_by_its_receiver() {
    let mut main = main_with_two_actors();
    effects(|it| main.call(actor(1), read(), vec![], it).map(|_| ()).unwrap());
    ready(&mut main, 1);
    let mut callee = callee(vec![carried(9)]);
    arrive(&mut callee, 1, read());
    let value = Ok(inline("9"));
    let frame = answer(1, value.clone(), vec![carried(9)]);
    assert_eq!(
        effects(|it| callee.finished(Ticket(1), value.clone(), vec![handle(9)], it)),
        [lend(9, MAIN), MemberEffect::ToCaller { to: MAIN, frame: frame.clone() }]
    );
    assert_eq!(
        effects(|it| main.receive_from_callee(CALLEE, frame, it)),
        [MemberEffect::Finish { call: CallNumber(1), result: value, carries: vec![handle(9)] }]
    );
    assert_eq!(effects(|it| main.release(handle(9), it)), [release(9, CALLEE)]);
}

#[test]
fn the_end_of_a_member_ends_its_calls_and_is_confirmed_with_what_came_from_it() {
    let mut main = main_with_two_actors();
    effects(|it| main.call(actor(1), read(), vec![], it).map(|_| ()).unwrap());
    effects(|it| main.call(actor(1), read(), vec![], it).map(|_| ()).unwrap());
    ready(&mut main, 1);
    effects(|it| main.receive_from_callee(CALLEE, answer(1, Ok(inline("")), vec![carried(9)]), it));
    assert_eq!(
        effects(|it| main.receive(FromCoordinator::MemberEnded { member: CALLEE }, it)),
        [
            MemberEffect::Close { member: CALLEE },
            MemberEffect::Finish { call: CallNumber(2), result: Err(CallError::Restarted), carries: vec![] },
            to_coordinator(ToCoordinator::Closed { member: CALLEE, settled: vec![(handle(9), 1)] }),
        ]
    );
    assert!(!main.admits(CALLEE) && main.admits(CALLEE.job().attempt(2).rank(0)));
    assert_eq!(effects(|it| main.release(handle(9), it)), [release(9, ROOT)]);
}

#[test]
fn nobody_answers_a_caller_that_has_ended_and_its_waiting_calls_never_start() {
    let mut callee = callee(vec![]);
    arrive(&mut callee, 1, write());
    arrive_with(&mut callee, 2, write(), vec![carried(5)]);
    assert_eq!(
        effects(|it| callee.receive(FromCoordinator::MemberEnded { member: MAIN }, it)),
        [
            MemberEffect::Close { member: MAIN },
            MemberEffect::Interrupt { ticket: Ticket(1) },
            release(5, MAIN),
            to_coordinator(ToCoordinator::Closed { member: MAIN, settled: vec![] }),
        ]
    );
    assert_eq!(effects(|it| callee.finished(Ticket(1), Err(CallError::Cancelled), vec![], it)), []);
}

#[test]
fn a_panic_fails_its_call_and_constructs_the_actor_when_no_call_runs() {
    let mut callee = callee(vec![]);
    arrive(&mut callee, 1, read());
    arrive(&mut callee, 2, read());
    arrive(&mut callee, 3, write());
    let panicked = answer(1, Err(CallError::Panicked("ouch".to_owned())), vec![]);
    assert_eq!(
        effects(|it| callee.panicked(Ticket(1), "ouch".to_owned(), it)),
        [MemberEffect::ToCaller { to: MAIN, frame: panicked }]
    );
    let incarnation = IncarnationNumber(2);
    let arguments = Bytes::from_static(b"new");
    assert_eq!(
        effects(|it| callee.finished(Ticket(2), Ok(inline("")), vec![], it)),
        [
            MemberEffect::ToCaller { to: MAIN, frame: answer(2, Ok(inline("")), vec![]) },
            MemberEffect::Construct { actor: actor(1), kind: 7, incarnation, arguments, needs: vec![] },
        ]
    );
    let CallRequest { method, arguments, needs, .. } = write();
    assert_eq!(
        effects(|it| callee.constructed(Ok(()), it)),
        [
            to_coordinator(ToCoordinator::Constructed { incarnation }),
            MemberEffect::Start { ticket: Ticket(3), method, arguments, needs, carries: vec![] },
        ]
    );
}

#[test]
fn a_call_for_an_actor_that_is_not_here_is_refused() {
    let mut main = Member::new(MAIN, ROOT);
    let refused = CallError::Refused("this process does not hold actor 1".to_owned());
    assert_eq!(
        arrive_with(&mut main, 1, write(), vec![carried(5)]),
        [MemberEffect::ToCaller { to: MAIN, frame: answer(1, Err(refused), vec![]) }, release(5, MAIN)]
    );
}

#[test]
fn limits_are_checked_before_anything_is_sent() {
    let mut main = main_with_two_actors();
    let mut sent = Vec::new();
    let large = Bytes::from(vec![0; MAX_ARGUMENTS + 1]);
    let call = main.call(actor(1), CallRequest { arguments: large.clone(), ..write() }, vec![], &mut sent);
    let text = "arguments of 16777217 bytes; a call takes at most 16777216: pass less at a time";
    assert_eq!(call, Err(CallError::Refused(text.to_owned())));
    let unknown = main.call(actor(8), write(), vec![], &mut sent);
    assert_eq!(unknown, Err(CallError::Refused("this process holds no actor 8".to_owned())));
    let create = main.create(gang(vec![ActorSpec { arguments: large, ..actor_spec() }]), vec![], &mut sent);
    assert_eq!(create, Err(CreateError::ArgumentsTooLarge { bytes: MAX_ARGUMENTS + 1 }));
    let name = "a".repeat(129);
    assert_eq!(main.find(name, &mut sent), Err(CreateError::NameLength { bytes: 129 }));
    assert_eq!(sent, []);
    for _ in 0..MAX_CALLS {
        main.call(actor(1), write(), vec![], &mut sent).unwrap();
    }
    assert!(!main.has_room(actor(1)) && main.has_room(actor(2)));
    assert_eq!(main.call(actor(1), write(), vec![], &mut sent), Err(CallError::Full));
}

#[test]
fn an_actor_that_is_told_to_end_starts_nothing_more() {
    let mut callee = callee(vec![]);
    arrive(&mut callee, 1, write());
    arrive(&mut callee, 2, write());
    assert_eq!(effects(|it| callee.receive(FromCoordinator::End, it)), [MemberEffect::End]);
    let panicked = answer(1, Err(CallError::Panicked("ouch".to_owned())), vec![]);
    assert_eq!(
        effects(|it| callee.panicked(Ticket(1), "ouch".to_owned(), it)),
        [MemberEffect::ToCaller { to: MAIN, frame: panicked }],
        "no call starts, and no construction"
    );
}

/// Its gang begins anew: nothing is constructed here, and what has not started never does.
#[test]
fn after_a_panic_the_process_of_a_gang_ends_when_nothing_runs() {
    let mut callee = callee_that(OnPanic::EndProcess, vec![]);
    arrive(&mut callee, 1, read());
    arrive(&mut callee, 2, read());
    arrive(&mut callee, 3, write());
    let panicked = effects(|it| callee.panicked(Ticket(1), "no luck".to_owned(), it));
    let error = CallError::Panicked("no luck".to_owned());
    let answered = MemberEffect::ToCaller { to: MAIN, frame: answer(1, Err(error), vec![]) };
    assert_eq!(panicked, [answered], "the other one still runs");
    let last = effects(|it| callee.finished(Ticket(2), Ok(inline("2")), vec![], it));
    let answered = MemberEffect::ToCaller { to: MAIN, frame: answer(2, Ok(inline("2")), vec![]) };
    assert_eq!(last, [answered, MemberEffect::Fail]);
}
