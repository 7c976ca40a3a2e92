//! Streams at their makers: numbers, pauses, what a new runner leaves out; and at their readers: credits,
//! retries, cancellation.

use bytes::Bytes;
use cohabit_types::{RankId, Span};

use super::kit::{MAIN, ROOT, actor, carried, class, effects, gpu_class, handle, inline, member, task};
use crate::{
    CallError, CallNumber, CallValue, FromCoordinator, ItemTotal, MAX_ARGUMENTS, MAX_UNREAD_BYTES,
    MAX_UNREAD_ITEMS, Member, MemberEffect, OnTaskError, RequestNumber, StreamPosition, TaskClass,
    TaskRequest, TaskSpec, TaskWait, Ticket, ToCallee, ToCaller, ToCoordinator,
};

const RUNNER: RankId = member(3);
const OTHER: RankId = member(4);

fn runner(class: TaskClass) -> Member {
    let mut it = Member::new(RUNNER, ROOT);
    effects(|effects| it.receive(FromCoordinator::ServeTasks { class }, effects));
    it
}

fn request(resume: Option<StreamPosition>) -> TaskRequest {
    let TaskSpec { function, arguments, needs, .. } = task();
    TaskRequest { function, depth: 0, arguments, needs, resume: resume.map(Box::new), store_as: None }
}

fn run(call: u64, resume: Option<StreamPosition>) -> ToCallee {
    ToCallee::Run { call: CallNumber(call), task: request(resume), carries: Vec::new() }
}

const fn credit(call: u64, items: u64, bytes: u64) -> ToCallee {
    ToCallee::Credit { call: CallNumber(call), items, bytes }
}

fn item(call: u64, number: u64) -> ToCaller {
    let item = Bytes::from(number.to_string());
    ToCaller::Item { call: CallNumber(call), number, item, carries: Vec::new() }
}

fn says(it: &mut Member, frame: ToCallee) -> Vec<MemberEffect> {
    effects(|effects| it.receive_from_caller(MAIN, frame, effects))
}

/// The first task makes an item.
fn makes(it: &mut Member, item: Bytes) -> Vec<MemberEffect> {
    effects(|effects| it.item(Ticket(1), item, Vec::new(), effects).unwrap())
}

fn sent(number: u64) -> Vec<MemberEffect> {
    vec![MemberEffect::ToCaller { to: MAIN, frame: item(1, number) }]
}

const fn more() -> MemberEffect {
    MemberEffect::MakeMore { ticket: Ticket(1) }
}

#[test]
fn a_maker_pauses_at_8_unread_items_and_goes_on_when_one_is_read() {
    let mut it = runner(class());
    says(&mut it, run(1, None));
    for number in 1..=MAX_UNREAD_ITEMS {
        assert!(it.may_make(Ticket(1)), "{number}");
        assert_eq!(makes(&mut it, Bytes::from(number.to_string())), sent(number));
    }
    assert!(!it.may_make(Ticket(1)));
    assert_eq!(says(&mut it, credit(2, 8, 8)), [], "of no stream");
    assert_eq!(says(&mut it, credit(1, 1, 1)), [more()]);
    assert!(it.may_make(Ticket(1)));
    assert_eq!(says(&mut it, credit(1, 4, 4)), [], "it may already");
    assert_eq!(makes(&mut it, Bytes::from_static(b"9")), sent(9));
    assert!(!it.may_make(Ticket(2)), "there is none");
}

#[test]
fn a_maker_pauses_at_64_mib_and_makes_no_item_of_more_than_16() {
    let mut it = runner(class());
    let (large, bytes) = (Bytes::from(vec![7; MAX_ARGUMENTS]), MAX_ARGUMENTS as u64);
    says(&mut it, run(1, None));
    for _ in 0..MAX_UNREAD_BYTES / bytes {
        assert!(it.may_make(Ticket(1)));
        makes(&mut it, large.clone());
    }
    assert!(!it.may_make(Ticket(1)));
    assert_eq!(says(&mut it, credit(1, 1, bytes)), [more()]);
    let larger = Bytes::from(vec![7; MAX_ARGUMENTS + 1]);
    let text =
        "an item of 16777217 bytes; one of a stream has at most 16777216: make smaller ones".to_owned();
    let refused = it.item(Ticket(1), larger, Vec::new(), &mut Vec::new());
    assert_eq!(refused, Err(CallError::Refused(text)));
}

#[test]
fn a_paused_maker_gives_its_core_back_and_not_its_gpu() {
    let start = |ticket| {
        let TaskRequest { function, arguments, needs, .. } = request(None);
        MemberEffect::StartTask { ticket: Ticket(ticket), function, arguments, needs, carries: Vec::new() }
    };
    let mut it = runner(class());
    says(&mut it, run(1, None));
    assert_eq!(says(&mut it, run(2, None)), []);
    (0..8).for_each(|_| _ = makes(&mut it, Bytes::new()));
    let parked = MemberEffect::ToCaller { to: MAIN, frame: ToCaller::Parked { call: CallNumber(1) } };
    assert_eq!(effects(|effects| it.task_waits(Ticket(1), TaskWait::Others, effects)), [parked, start(2)]);
    assert_eq!(says(&mut it, credit(1, 8, 0)), [more()]);
    let mut it = runner(gpu_class(500));
    says(&mut it, run(1, None));
    says(&mut it, run(2, None));
    (0..8).for_each(|_| _ = makes(&mut it, Bytes::new()));
    assert_eq!(effects(|effects| it.task_waits(Ticket(1), TaskWait::Others, effects)), []);
}

#[test]
fn a_new_runner_sends_only_what_has_not_arrived_and_counts_what_is_unread() {
    let mut it = runner(class());
    let resume = StreamPosition { skip: 5, unread: ItemTotal { items: 8, bytes: 40 } };
    says(&mut it, run(1, Some(resume)));
    for _ in 1..=5 {
        assert!(it.may_make(Ticket(1)), "it takes up no window");
        assert_eq!(makes(&mut it, Bytes::from_static(b"again")), []);
    }
    assert!(!it.may_make(Ticket(1)), "all that may be unread is");
    assert_eq!(says(&mut it, credit(1, 1, 5)), [more()]);
    assert_eq!(makes(&mut it, Bytes::from_static(b"6")), sent(6));
    assert!(!it.may_make(Ticket(1)));
}

#[test]
fn what_is_read_before_a_task_starts_counts() {
    let mut it = runner(class());
    says(&mut it, run(9, None));
    let unread = ItemTotal { items: 8, bytes: MAX_UNREAD_BYTES };
    says(&mut it, run(1, Some(StreamPosition { skip: 8, unread })));
    assert_eq!(says(&mut it, credit(1, 8, MAX_UNREAD_BYTES)), []);
    effects(|effects| it.task_ended(Ticket(1), Ok(inline("")), Vec::new(), Span::ZERO, effects));
    let make = |it: &mut Member, number: u64| {
        effects(|effects| it.item(Ticket(2), Bytes::from(number.to_string()), Vec::new(), effects).unwrap())
    };
    let skipped: usize = (1..=8).map(|number| make(&mut it, number).len()).sum();
    assert_eq!((skipped, it.may_make(Ticket(2))), (0, true));
    let sent: usize = (9..=16).map(|number| make(&mut it, number).len()).sum();
    assert_eq!((sent, it.may_make(Ticket(2))), (8, false));
}

#[test]
fn handles_in_items_are_lent_before_and_nothing_goes_to_a_caller_that_has_ended() {
    let mut it = runner(class());
    let found = FromCoordinator::Found { request: RequestNumber(1), actor: Some(actor(8)) };
    effects(|effects| it.receive(found, effects));
    says(&mut it, run(1, None));
    let mut make = || {
        let mut made = Vec::new();
        it.item(Ticket(1), Bytes::from_static(b"1"), vec![handle(8)], &mut made).unwrap();
        let ended = FromCoordinator::MemberEnded { member: MAIN };
        it.receive(ended, &mut Vec::new());
        made
    };
    let frame = ToCaller::Item {
        call: CallNumber(1),
        number: 1,
        item: Bytes::from_static(b"1"),
        carries: vec![carried(8)],
    };
    let lend = MemberEffect::ToCoordinator(ToCoordinator::Lend { held: handle(8), to: MAIN });
    assert_eq!(make(), [lend, MemberEffect::ToCaller { to: MAIN, frame }]);
    assert_eq!(make(), []);
}

/// A main that has called task 1, and runners that have joined.
fn reader(spec: TaskSpec) -> Member {
    let mut it = Member::new(MAIN, ROOT);
    for runner in [OTHER, RUNNER] {
        let joined = FromCoordinator::RunnerJoined { class: class(), runner };
        effects(|effects| it.receive(joined, effects));
    }
    effects(|effects| _ = it.run_task(spec, effects).unwrap());
    it
}

fn answers(it: &mut Member, from: RankId, frame: ToCaller) -> Vec<MemberEffect> {
    effects(|effects| it.receive_from_callee(from, frame, effects))
}

fn arrived(number: u64) -> Vec<MemberEffect> {
    let item = Bytes::from(number.to_string());
    vec![MemberEffect::Item { call: CallNumber(1), number, item, carries: Vec::new() }]
}

fn arrive(it: &mut Member, from: RankId, numbers: std::ops::RangeInclusive<u64>) {
    numbers.for_each(|number| assert_eq!(answers(it, from, item(1, number)), arrived(number)));
}

fn read(it: &mut Member) -> Vec<MemberEffect> {
    effects(|effects| it.read(CallNumber(1), effects))
}

fn told(to: RankId, items: u64, bytes: u64) -> Vec<MemberEffect> {
    vec![MemberEffect::ToCallee { to, frame: credit(1, items, bytes) }]
}

fn dies(it: &mut Member, runner: RankId) -> Vec<MemberEffect> {
    let all = effects(|effects| it.receive(FromCoordinator::MemberEnded { member: runner }, effects));
    let aside =
        |effect: &MemberEffect| matches!(effect, MemberEffect::Close { .. } | MemberEffect::ToCoordinator(_));
    all.into_iter().filter(|effect| !aside(effect)).collect()
}

fn sent_again(to: RankId, skip: u64, items: u64) -> MemberEffect {
    let resume = StreamPosition { skip, unread: ItemTotal { items, bytes: items } };
    MemberEffect::ToCallee { to, frame: run(1, Some(resume)) }
}

fn ran(result: Result<CallValue, CallError>) -> ToCaller {
    ToCaller::Ran { call: CallNumber(1), result, carries: Vec::new(), took: Span::ZERO }
}

fn finish(result: Result<CallValue, CallError>) -> MemberEffect {
    MemberEffect::Finish { call: CallNumber(1), result, carries: Vec::new() }
}

#[test]
fn a_maker_hears_of_half_a_window_or_of_each_item_if_it_may_be_paused() {
    let mut it = reader(task());
    arrive(&mut it, RUNNER, 1..=7);
    let credits: Vec<_> = (0..5).map(|_| read(&mut it)).collect();
    assert_eq!(credits, [vec![], vec![], vec![], told(RUNNER, 4, 4), vec![]]);
    arrive(&mut it, RUNNER, 8..=11);
    assert_eq!(read(&mut it), [], "6 of 7 that the maker believes to be unread");
    arrive(&mut it, RUNNER, 12..=12);
    assert_eq!(read(&mut it), told(RUNNER, 3, 3), "it may be paused");
    assert_eq!(read(&mut it), []);
    assert_eq!(answers(&mut it, RUNNER, ran(Ok(inline(""))))[0], finish(Ok(inline(""))));
    assert_eq!((0..9).flat_map(|_| read(&mut it)).count(), 0, "it has ended");
}

#[test]
fn large_items_are_credited_by_their_bytes() {
    let mut it = reader(task());
    let item = Bytes::from(vec![7; MAX_ARGUMENTS]);
    for number in 1..=3 {
        let item = ToCaller::Item { call: CallNumber(1), number, item: item.clone(), carries: Vec::new() };
        answers(&mut it, RUNNER, item);
    }
    let bytes = MAX_ARGUMENTS as u64;
    let credits: Vec<_> = (0..3).map(|_| read(&mut it)).collect();
    assert_eq!(credits, [vec![], told(RUNNER, 2, 2 * bytes), vec![]]);
}

#[test]
fn a_stream_goes_on_at_another_runner_after_what_has_arrived() {
    let mut it = reader(TaskSpec { retries: 1, ..task() });
    arrive(&mut it, RUNNER, 1..=5);
    assert_eq!(read(&mut it), []);
    assert_eq!(answers(&mut it, OTHER, item(1, 6)), [], "it has no such task");
    assert_eq!(dies(&mut it, RUNNER), [sent_again(OTHER, 5, 4)]);
    arrive(&mut it, OTHER, 6..=6);
    let credits: Vec<_> = (0..4).map(|_| read(&mut it)).collect();
    assert_eq!(credits, [vec![], vec![], vec![], told(OTHER, 4, 4)], "without the one of the first runner");
    let lost = dies(&mut it, OTHER);
    assert!(matches!(lost[..], [MemberEffect::Finish { result: Err(CallError::Lost { ends: 2, .. }), .. }]));
}

#[test]
fn what_is_read_without_a_runner_is_known_to_the_next_one() {
    let mut it = reader(TaskSpec { retries: 1, ..task() });
    arrive(&mut it, RUNNER, 1..=8);
    dies(&mut it, OTHER);
    assert_eq!(dies(&mut it, RUNNER), []);
    assert_eq!((0..6).flat_map(|_| read(&mut it)).count(), 0);
    let joined = FromCoordinator::RunnerJoined { class: class(), runner: member(5) };
    assert_eq!(effects(|effects| it.receive(joined, effects)), [sent_again(member(5), 8, 2)]);
}

#[test]
fn an_error_ends_a_stream_or_costs_a_retry_after_its_items() {
    let failed = || Err(CallError::Failed("the disk is full".to_owned()));
    let mut it = reader(task());
    arrive(&mut it, RUNNER, 1..=2);
    assert_eq!(answers(&mut it, RUNNER, ran(failed()))[0], finish(failed()));
    let mut it = reader(TaskSpec { retries: 1, on_error: OnTaskError::Retry, ..task() });
    arrive(&mut it, RUNNER, 1..=2);
    assert_eq!(answers(&mut it, RUNNER, ran(failed())), [sent_again(RUNNER, 2, 2)]);
    arrive(&mut it, RUNNER, 3..=3);
    assert_eq!(answers(&mut it, RUNNER, ran(failed()))[0], finish(failed()));
}

#[test]
fn items_that_nobody_waits_for_give_their_handles_back() {
    let mut it = reader(task());
    let carrying = |call: u64| {
        let (call, item) = (CallNumber(call), Bytes::new());
        ToCaller::Item { call, number: 1, item, carries: vec![carried(8)] }
    };
    let release = || {
        let frame = ToCoordinator::Release { held: handle(8), settled: vec![(RUNNER, 1)] };
        MemberEffect::ToCoordinator(frame)
    };
    assert_eq!(answers(&mut it, RUNNER, carrying(2)), [release()], "of no call");
    let item =
        MemberEffect::Item { call: CallNumber(1), number: 1, item: Bytes::new(), carries: vec![handle(8)] };
    assert_eq!(answers(&mut it, RUNNER, carrying(1)), [item]);
    assert_eq!(effects(|effects| it.release(handle(8), effects)), [release()], "by its user");
    effects(|effects| it.cancel_task(CallNumber(1), effects));
    assert_eq!(answers(&mut it, RUNNER, carrying(1)), [release()], "cancelled");
}
