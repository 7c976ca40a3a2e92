//! Objects at the coordinator: who is told of them, who holds them, and what is left when processes end.

use bytes::Bytes;
use cohabit_types::RankId;

use super::super::kit::{MAIN, ROOT, actor, actor_spec, effects, gang, member, root_node};
use super::kit::{carried, leaf, object, own, ready, reference, shared_inline, stored, watch};
use crate::{
    ActorSpec, CallError, Carried, CarriedValue, Construction, Coordinator, CoordinatorEffect,
    FromCoordinator, FromDirectory, HeldId, IncarnationNumber, Member, MemberEffect, ObjectId, OnPanic,
    RequestNumber, RunnerReport, RunnerState, SharedValue, ToCoordinator, ToDirectory, ToStore,
};

const A: RankId = member(3);
const B: RankId = member(4);

/// A main and two other processes are connected.
fn application() -> Coordinator {
    let mut it = Coordinator::new(ROOT, root_node(), None, None);
    for name in [MAIN, A, B] {
        effects(|all| {
            it.main(name.job(), all);
            it.connected(name, "n0", all);
        });
    }
    it
}

fn says(it: &mut Coordinator, from: RankId, frame: ToCoordinator) -> Vec<CoordinatorEffect> {
    effects(|all| it.received(from, frame, all))
}

fn tells(it: &mut Coordinator, from: RankId, report: ToDirectory) -> Vec<CoordinatorEffect> {
    says(it, from, ToCoordinator::Object(report))
}

fn shares(
    it: &mut Coordinator,
    from: RankId,
    object: ObjectId,
    value: Option<SharedValue>,
) -> Vec<CoordinatorEffect> {
    tells(it, from, ToDirectory::Share { object, value })
}

fn watches(it: &mut Coordinator, by: RankId, object: ObjectId, lender: RankId) -> Vec<CoordinatorEffect> {
    tells(it, by, ToDirectory::Watch { object, lender })
}

fn stores(
    it: &mut Coordinator,
    from: RankId,
    object: ObjectId,
    carries: Vec<Carried>,
) -> Vec<CoordinatorEffect> {
    tells(it, from, ToDirectory::Stored { stored: stored(object, !carries.is_empty()), carries })
}

fn opens(it: &mut Coordinator, by: RankId, object: ObjectId) -> Vec<CoordinatorEffect> {
    tells(it, by, ToDirectory::Open { request: RequestNumber(1), object })
}

fn lends(it: &mut Coordinator, by: RankId, object: ObjectId, to: RankId) {
    assert_eq!(says(it, by, ToCoordinator::Lend { held: reference(object), to }), []);
}

fn releases(it: &mut Coordinator, by: RankId, object: ObjectId, lender: RankId) -> Vec<CoordinatorEffect> {
    says(it, by, ToCoordinator::Release { held: reference(object), settled: vec![(lender, 1)] })
}

fn closes(
    it: &mut Coordinator,
    by: RankId,
    member: RankId,
    settled: &[(HeldId, u64)],
) -> Vec<CoordinatorEffect> {
    says(it, by, ToCoordinator::Closed { member, settled: settled.to_vec() })
}

fn dies(it: &mut Coordinator, member: RankId) -> Vec<CoordinatorEffect> {
    let state = RunnerState::Ended { code: 1, text: "its process ended with 1".to_owned() };
    effects(|all| it.report(member.job(), RunnerReport { ended_attempts: 1, state }, all))
}

fn news(to: RankId, news: FromDirectory) -> CoordinatorEffect {
    CoordinatorEffect::Send { to, frame: FromCoordinator::Object(news) }
}

fn known(to: RankId, object: ObjectId, value: SharedValue) -> CoordinatorEffect {
    news(to, FromDirectory::Known { object, value })
}

fn opened(to: RankId, carries: Vec<Carried>) -> CoordinatorEffect {
    news(to, FromDirectory::Opened { request: RequestNumber(1), carries })
}

const fn free(object: ObjectId) -> CoordinatorEffect {
    CoordinatorEffect::OwnStore(ToStore::Free { object })
}

fn ended(to: RankId, member: RankId) -> CoordinatorEffect {
    CoordinatorEffect::Send { to, frame: FromCoordinator::MemberEnded { member } }
}

fn lost(process: RankId) -> SharedValue {
    let text = format!("process {process}, which waited for its value, has ended: make it again");
    SharedValue::Failed(CallError::ObjectLost(text))
}

#[test]
fn watchers_get_a_value_when_it_is_known_and_hold_what_is_in_it() {
    let mut it = application();
    let (x, s) = (own(1), own(2));
    assert_eq!(stores(&mut it, MAIN, s, vec![]), []);
    assert_eq!(watches(&mut it, B, x, MAIN), [], "before it is shared");
    assert_eq!(shares(&mut it, MAIN, x, None), []);
    for to in [A, B] {
        lends(&mut it, MAIN, x, to);
    }
    assert_eq!(watches(&mut it, A, x, MAIN), []);
    let value = || SharedValue::Stored(stored(s, false));
    let resolve = ToDirectory::Resolve { object: x, value: value() };
    assert_eq!(tells(&mut it, MAIN, resolve), [known(A, x, value()), known(B, x, value())]);
    assert_eq!(watches(&mut it, A, x, B), [known(A, x, value())], "again, after it had dropped it");
    assert_eq!(releases(&mut it, MAIN, s, ROOT), []);
    assert_eq!(releases(&mut it, MAIN, x, ROOT), []);
    assert_eq!(releases(&mut it, A, x, MAIN), []);
    assert_eq!(releases(&mut it, B, x, MAIN), [], "nobody holds it, and what it names is still held");
    let release = ToCoordinator::Release { held: reference(s), settled: vec![(ROOT, 2)] };
    assert_eq!(says(&mut it, A, release), []);
    assert_eq!(releases(&mut it, B, s, ROOT), [free(s)]);
    assert!(it.is_idle());
}

#[test]
fn a_value_holds_what_is_in_it_for_as_long_as_its_reference_is_held() {
    let mut it = application();
    let (x, y, s) = (own(1), own(2), own(3));
    stores(&mut it, MAIN, s, vec![]);
    let inner = vec![carried(y, CarriedValue::Stored(stored(s, false)))];
    shares(&mut it, MAIN, x, Some(shared_inline("x", inner.clone())));
    lends(&mut it, MAIN, x, A);
    assert_eq!(releases(&mut it, MAIN, s, ROOT), []);
    assert_eq!(releases(&mut it, MAIN, x, ROOT), []);
    assert_eq!(watches(&mut it, A, x, MAIN), [known(A, x, shared_inline("x", inner))]);
    assert_eq!(releases(&mut it, A, x, MAIN), []);
    assert_eq!(releases(&mut it, A, s, ROOT), [free(s)]);
    assert!(it.is_idle());
}

#[test]
fn a_reference_that_nobody_holds_is_unwanted() {
    let mut it = application();
    shares(&mut it, MAIN, own(1), None);
    lends(&mut it, MAIN, own(1), A);
    assert_eq!(releases(&mut it, MAIN, own(1), ROOT), []);
    let unwanted = news(MAIN, FromDirectory::Unwanted { object: own(1) });
    assert_eq!(releases(&mut it, A, own(1), MAIN), [unwanted]);
    let value = shared_inline("too late", vec![leaf(own(2), "leaf")]);
    assert_eq!(tells(&mut it, MAIN, ToDirectory::Resolve { object: own(1), value }), []);
    assert!(it.is_idle());
}

#[test]
fn what_a_process_that_ends_had_promised_is_lost_and_what_it_stored_is_kept_while_held() {
    let mut it = application();
    let (promised, lent, unlent, freed) = (object(A, 1), object(A, 2), object(A, 3), object(A, 4));
    shares(&mut it, A, promised, None);
    for object in [lent, unlent, freed] {
        stores(&mut it, A, object, vec![]);
    }
    assert_eq!(releases(&mut it, A, freed, ROOT), [free(freed)]);
    for object in [promised, lent] {
        lends(&mut it, A, object, B);
    }
    watches(&mut it, B, promised, A);
    assert_eq!(
        dies(&mut it, A),
        [CoordinatorEffect::Close { member: A }, known(B, promised, lost(A)), ended(MAIN, A), ended(B, A),]
    );
    assert_eq!(closes(&mut it, MAIN, A, &[]), []);
    let forget = CoordinatorEffect::OwnStore(ToStore::Forget { maker: A, keep: vec![promised, lent] });
    let settled = [(reference(promised), 1), (reference(lent), 1)];
    assert_eq!(closes(&mut it, B, A, &settled), [free(unlent), forget]);
    assert_eq!(watches(&mut it, MAIN, promised, B), [known(MAIN, promised, lost(A))]);
    assert_eq!(releases(&mut it, B, promised, ROOT), []);
    assert_eq!(releases(&mut it, B, lent, ROOT), [free(lent)]);
    assert!(it.is_idle());
}

#[test]
fn who_waits_for_another_one_hands_the_wait_on() {
    let mut it = application();
    assert_eq!(watches(&mut it, B, own(1), A), [], "A will say it");
    assert_eq!(watches(&mut it, A, own(1), MAIN), [], "which has it from the main");
    lends(&mut it, A, own(1), B);
    let closed = dies(&mut it, A);
    assert_eq!(closed.len(), 3, "nothing is lost: {closed:?}");
    shares(&mut it, MAIN, own(1), None);
    let value = shared_inline("value", vec![]);
    let resolve = ToDirectory::Resolve { object: own(1), value: value.clone() };
    assert_eq!(tells(&mut it, MAIN, resolve), [known(B, own(1), value)]);
}

#[test]
fn who_waits_for_one_that_waited_for_a_dead_one_hears_that_it_is_lost() {
    let x = object(A, 1);
    let mut it = application();
    dies(&mut it, A);
    assert_eq!(watches(&mut it, MAIN, x, B), []);
    assert_eq!(watches(&mut it, B, x, A), [known(MAIN, x, lost(A)), known(B, x, lost(A))]);
    let mut it = application();
    dies(&mut it, A);
    assert_eq!(watches(&mut it, B, x, A), [known(B, x, lost(A))]);
    assert_eq!(watches(&mut it, MAIN, x, B), [known(MAIN, x, lost(A))]);
    lends(&mut it, B, x, MAIN);
    closes(&mut it, B, A, &[(reference(x), 1)]);
    closes(&mut it, MAIN, A, &[]);
    assert_eq!(releases(&mut it, B, x, ROOT), []);
    assert!(!it.is_idle());
    assert_eq!(releases(&mut it, MAIN, x, B), []);
    assert!(it.is_idle());
}

#[test]
fn nothing_is_left_of_a_lost_reference_whose_watcher_ends_too() {
    let mut it = application();
    dies(&mut it, A);
    watches(&mut it, B, object(A, 1), A);
    dies(&mut it, B);
    closes(&mut it, MAIN, B, &[]);
    assert!(!it.is_idle(), "it may still be held");
    closes(&mut it, MAIN, A, &[]);
    assert!(it.is_idle());
}

#[test]
fn handles_in_a_stored_object_are_lent_to_readers_and_let_go_with_it() {
    let mut it = application();
    let (inner, outer) = (own(1), own(2));
    stores(&mut it, MAIN, inner, vec![]);
    let carries = || vec![carried(inner, CarriedValue::Stored(stored(inner, false))), leaf(own(3), "leaf")];
    stores(&mut it, MAIN, outer, carries());
    lends(&mut it, MAIN, outer, A);
    assert_eq!(releases(&mut it, MAIN, inner, ROOT), [], "the object holds it");
    assert_eq!(opens(&mut it, A, outer), [opened(A, carries())]);
    assert_eq!(releases(&mut it, A, outer, MAIN), []);
    assert_eq!(releases(&mut it, A, inner, ROOT), []);
    assert_eq!(releases(&mut it, MAIN, outer, ROOT), [free(outer), free(inner)]);
    assert!(it.is_idle());
}

#[test]
fn a_question_that_overtakes_the_word_of_its_object_waits_for_it() {
    let mut it = application();
    let (inner, outer) = (own(1), own(2));
    assert_eq!(opens(&mut it, A, outer), []);
    assert_eq!(opens(&mut it, B, object(A, 1)), []);
    stores(&mut it, MAIN, inner, vec![]);
    let carries = || vec![carried(inner, CarriedValue::Stored(stored(inner, false)))];
    assert_eq!(stores(&mut it, MAIN, outer, carries()), [opened(A, carries())]);
    lends(&mut it, MAIN, outer, A);
    assert_eq!(releases(&mut it, MAIN, inner, ROOT), []);
    assert_eq!(releases(&mut it, MAIN, outer, ROOT), []);
    assert_eq!(releases(&mut it, A, outer, MAIN), [free(outer)]);
    assert_eq!(releases(&mut it, A, inner, ROOT), [free(inner)], "it was lent");
    assert!(!it.is_idle(), "a question waits");
    assert_eq!(dies(&mut it, A)[1], opened(B, vec![]), "nobody will say it");
    assert_eq!(opens(&mut it, B, object(A, 1)), [opened(B, vec![])]);
}

#[test]
fn a_constructor_waits_for_what_it_needs() {
    let mut it = application();
    shares(&mut it, MAIN, own(1), None);
    let spec = ActorSpec { needs: vec![own(1)], ..actor_spec() };
    let carries = vec![carried(own(1), CarriedValue::Shared)];
    let (request, gang) = (RequestNumber(1), gang(vec![spec.clone()]));
    let create = ToCoordinator::Create { request, gang, carries: vec![carries.clone()] };
    says(&mut it, MAIN, create);
    assert_eq!(releases(&mut it, MAIN, own(1), ROOT), [], "the arguments hold it");
    let (process, incarnation) = (member(9), IncarnationNumber(1));
    effects(|all| it.submitted(actor(1), Ok(process.job()), all));
    let ActorSpec { kind, concurrency, arguments, needs, .. } = spec;
    let construction = Construction {
        actor: actor(1),
        kind,
        incarnation,
        concurrency,
        on_panic: OnPanic::Reconstruct,
        arguments: arguments.clone(),
        needs: needs.clone(),
        carries,
    };
    let frame = FromCoordinator::Construct(construction);
    assert_eq!(
        effects(|all| it.connected(process, "n0", all)),
        [CoordinatorEffect::Send { to: process, frame: frame.clone() }]
    );
    let mut callee = Member::new(process, ROOT);
    assert_eq!(
        effects(|all| callee.receive(frame, all)),
        [
            watch(own(1), ROOT),
            MemberEffect::Construct { actor: actor(1), kind, incarnation, arguments, needs },
        ]
    );
    assert_eq!(watches(&mut it, process, own(1), ROOT), []);
    let value = || shared_inline("value", vec![]);
    let resolve = ToDirectory::Resolve { object: own(1), value: value() };
    assert_eq!(tells(&mut it, MAIN, resolve), [known(process, own(1), value())]);
    let known = FromDirectory::Known { object: own(1), value: value() };
    assert_eq!(effects(|all| callee.receive(FromCoordinator::Object(known), all)), [ready(own(1), None)]);
    let release = ToCoordinator::Release { held: HeldId::Actor(actor(1)), settled: vec![(ROOT, 1)] };
    says(&mut it, MAIN, release);
    dies(&mut it, process);
    for by in [MAIN, A, B] {
        closes(&mut it, by, process, &[]);
    }
    assert!(it.is_idle());
}

#[test]
fn values_that_are_passed_on_have_256_mib_together() {
    let mut it = application();
    let bytes = Bytes::from(vec![7; 16 << 20]);
    let value = || SharedValue::Inline { value: bytes.clone(), carries: vec![] };
    for number in 1..=17 {
        shares(&mut it, MAIN, own(number), Some(value()));
    }
    let text = "the values that processes of the application share have more than 256 MiB: drop some references, \
                or put many values into one object";
    let refused = SharedValue::Failed(CallError::Refused(text.to_owned()));
    assert_eq!(watches(&mut it, A, own(16), MAIN), [known(A, own(16), value())]);
    assert_eq!(watches(&mut it, A, own(17), MAIN), [known(A, own(17), refused)]);
    releases(&mut it, MAIN, own(17), ROOT);
    releases(&mut it, MAIN, own(3), ROOT);
    shares(&mut it, MAIN, own(18), Some(value()));
    assert_eq!(watches(&mut it, A, own(18), MAIN), [known(A, own(18), value())]);
}
