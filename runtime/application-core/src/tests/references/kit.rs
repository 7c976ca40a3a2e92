//! What the scenarios of references share.

use bytes::Bytes;
use cohabit_types::{RankId, Span};

use super::super::kit::{MAIN, ROOT, class, effects, inline, member, task};
use crate::{
    CallError, CallNumber, CallValue, Carried, CarriedValue, FromCoordinator, FromDirectory, HeldId, Member,
    MemberEffect, NodeNumber, ObjectId, SharedValue, StoredObject, TaskRequest, TaskSpec, ToCallee, ToCaller,
    ToCoordinator, ToDirectory,
};

pub(super) const RUNNER: RankId = member(3);
/// How large the values are of which two do not travel with one frame.
pub(super) const LARGE: usize = 600 << 10;

pub(super) const fn object(maker: RankId, number: u64) -> ObjectId {
    ObjectId { maker, number }
}

/// An object of the main.
pub(super) const fn own(number: u64) -> ObjectId {
    object(MAIN, number)
}

pub(super) const fn reference(object: ObjectId) -> HeldId {
    HeldId::Object(object)
}

pub(super) const fn carried(object: ObjectId, value: CarriedValue) -> Carried {
    Carried::Object { object, value }
}

pub(super) const fn leaf(object: ObjectId, value: &'static str) -> Carried {
    carried(object, CarriedValue::Inline(Bytes::from_static(value.as_bytes())))
}

pub(super) const fn shared_inline(value: &'static str, carries: Vec<Carried>) -> SharedValue {
    SharedValue::Inline { value: Bytes::from_static(value.as_bytes()), carries }
}

/// 100,000 bytes.
pub(super) const fn stored(object: ObjectId, has_handles: bool) -> StoredObject {
    StoredObject { object, bytes: 100_000, home: NodeNumber::COORDINATOR, has_handles }
}

pub(super) const fn to_directory(report: ToDirectory) -> MemberEffect {
    MemberEffect::ToCoordinator(ToCoordinator::Object(report))
}

pub(super) const fn share(object: ObjectId, value: Option<SharedValue>) -> MemberEffect {
    to_directory(ToDirectory::Share { object, value })
}

pub(super) const fn watch(object: ObjectId, lender: RankId) -> MemberEffect {
    to_directory(ToDirectory::Watch { object, lender })
}

pub(super) const fn lend(held: HeldId, to: RankId) -> MemberEffect {
    MemberEffect::ToCoordinator(ToCoordinator::Lend { held, to })
}

pub(super) fn release(held: HeldId, settled: &[(RankId, u64)]) -> MemberEffect {
    MemberEffect::ToCoordinator(ToCoordinator::Release { held, settled: settled.to_vec() })
}

pub(super) const fn ready(object: ObjectId, call: Option<u64>) -> MemberEffect {
    let call = match call {
        Some(call) => Some(CallNumber(call)),
        None => None,
    };
    MemberEffect::ObjectReady { object, call }
}

pub(super) fn finish(call: u64, result: Result<CallValue, CallError>, carries: &[HeldId]) -> MemberEffect {
    MemberEffect::Finish { call: CallNumber(call), result, carries: carries.to_vec() }
}

/// Call number `call` goes to the runner.
pub(super) fn run(call: u64, needs: &[ObjectId], carries: Vec<Carried>) -> MemberEffect {
    let TaskSpec { function, arguments, .. } = task();
    let task =
        TaskRequest { function, depth: 0, arguments, needs: needs.to_vec(), resume: None, store_as: None };
    MemberEffect::ToCallee { to: RUNNER, frame: ToCallee::Run { call: CallNumber(call), task, carries } }
}

pub(super) const fn cancel(call: u64) -> MemberEffect {
    MemberEffect::ToCallee { to: RUNNER, frame: ToCallee::Cancel { call: CallNumber(call) } }
}

/// A main with a runner, which has run task 1 in no time.
pub(super) fn main() -> Member {
    let mut main = Member::new(MAIN, ROOT);
    let joined = FromCoordinator::RunnerJoined { class: class(), runner: RUNNER };
    effects(|all| main.receive(joined, all));
    effects(|all| _ = main.run_task(task(), all).unwrap());
    ran(&mut main, 1, Ok(inline("done")), vec![]);
    assert!(main.is_idle());
    main
}

/// The runner answers.
pub(super) fn ran(
    main: &mut Member,
    call: u64,
    result: Result<CallValue, CallError>,
    carries: Vec<Carried>,
) -> Vec<MemberEffect> {
    let frame = ToCaller::Ran { call: CallNumber(call), result, carries, took: Span::ZERO };
    effects(|all| main.receive_from_callee(RUNNER, frame, all))
}

/// The main calls a task for a reference, with these references in its arguments, and needs some of them.
pub(super) fn start(main: &mut Member, needs: &[ObjectId], others: &[ObjectId]) -> Vec<MemberEffect> {
    let carries = needs.iter().chain(others).map(|it| reference(*it)).collect();
    let spec = TaskSpec { needs: needs.to_vec(), carries, ..task() };
    effects(|all| _ = main.run_task_for_reference(spec, all).unwrap())
}

pub(super) fn drops(main: &mut Member, object: ObjectId) -> Vec<MemberEffect> {
    effects(|all| main.release(reference(object), all))
}

pub(super) fn hears(main: &mut Member, news: FromDirectory) -> Vec<MemberEffect> {
    effects(|all| main.receive(FromCoordinator::Object(news), all))
}

pub(super) fn failed() -> CallError {
    CallError::Failed("no such file".to_owned())
}

pub(super) fn dependency() -> CallError {
    CallError::Dependency("no such file".to_owned())
}
