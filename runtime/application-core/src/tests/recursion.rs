//! Tasks that call tasks end on a single runner, and few of them wait at a time.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use cohabit_types::{RankId, Span};

use super::kit::{MAIN, ROOT, class, effects, member, task};
use crate::{
    CallNumber, CallValue, FromCoordinator, Member, MemberEffect, TaskSpec, TaskWait, Ticket, ToCallee,
    ToCaller,
};

const RUNNER: RankId = member(3);

/// A main and one runner, which calls itself: `fib(n)` is `fib(n - 1) + fib(n - 2)`, and 1 for 1 and 2.
struct Recursion {
    main: Member,
    runner: Member,
    queue: VecDeque<(RankId, MemberEffect)>,
    sums: BTreeMap<Ticket, Sum>,
    callers: BTreeMap<CallNumber, Ticket>,
    most_parked: usize,
    value: Option<u64>,
}

#[derive(Default)]
struct Sum {
    open: usize,
    total: u64,
}

fn call(n: u64, caller: Option<Ticket>) -> TaskSpec {
    TaskSpec { caller, arguments: Bytes::copy_from_slice(&n.to_le_bytes()), ..task() }
}

fn number(bytes: &Bytes) -> u64 {
    u64::from_le_bytes(bytes[..].try_into().unwrap())
}

impl Recursion {
    fn new() -> Recursion {
        let mut it = Recursion {
            main: Member::new(MAIN, ROOT),
            runner: Member::new(RUNNER, ROOT),
            queue: VecDeque::new(),
            sums: BTreeMap::new(),
            callers: BTreeMap::new(),
            most_parked: 0,
            value: None,
        };
        effects(|all| it.runner.receive(FromCoordinator::ServeTasks { class: class() }, all));
        for caller in [&mut it.main, &mut it.runner] {
            let joined = FromCoordinator::RunnerJoined { class: class(), runner: RUNNER };
            effects(|all| caller.receive(joined, all));
        }
        it
    }

    fn act(&mut self, who: RankId, act: impl FnOnce(&mut Member, &mut Vec<MemberEffect>)) {
        let member = if who == MAIN { &mut self.main } else { &mut self.runner };
        let new = effects(|all| act(member, all));
        self.queue.extend(new.into_iter().map(|effect| (who, effect)));
    }

    fn run(&mut self, n: u64) {
        self.act(MAIN, |it, all| _ = it.run_task(call(n, None), all).unwrap());
        while let Some((who, effect)) = self.queue.pop_front() {
            if let MemberEffect::ToCallee { frame, .. } = effect {
                self.act(RUNNER, |it, all| it.receive_from_caller(who, frame, all));
            } else if let MemberEffect::ToCaller { to, frame } = effect {
                self.act(to, |it, all| it.receive_from_callee(RUNNER, frame, all));
            } else if let MemberEffect::StartTask { ticket, arguments, .. } = effect {
                self.start(ticket, number(&arguments));
            } else if let MemberEffect::Finish { call, result, .. } = effect {
                let CallValue::Inline(value) = result.unwrap() else { panic!("a small value") };
                self.finish(who, call, number(&value));
            }
        }
    }

    fn start(&mut self, ticket: Ticket, n: u64) {
        if n <= 2 {
            return self.end(ticket, 1);
        }
        for child in [n - 1, n - 2] {
            let mut calls = Vec::new();
            self.act(RUNNER, |it, all| calls.push(it.run_task(call(child, Some(ticket)), all).unwrap()));
            self.callers.insert(calls[0], ticket);
        }
        self.sums.insert(ticket, Sum { open: 2, total: 0 });
        self.most_parked = self.most_parked.max(self.sums.len());
        self.act(RUNNER, |it, all| it.task_waits(ticket, TaskWait::Tasks, all));
    }

    fn finish(&mut self, who: RankId, call: CallNumber, value: u64) {
        if who == MAIN {
            self.value = Some(value);
            return;
        }
        let ticket = self.callers.remove(&call).unwrap();
        let sum = self.sums.get_mut(&ticket).unwrap();
        sum.open -= 1;
        sum.total += value;
        if sum.open == 0 {
            let total = self.sums.remove(&ticket).unwrap().total;
            self.act(RUNNER, |it, all| it.task_goes_on(ticket, all));
            self.end(ticket, total);
        }
    }

    fn end(&mut self, ticket: Ticket, value: u64) {
        let value = CallValue::Inline(Bytes::copy_from_slice(&value.to_le_bytes()));
        let took = Span::from_micros(10);
        self.act(RUNNER, |it, all| it.task_ended(ticket, Ok(value), Vec::new(), took, all));
    }
}

#[test]
fn recursion_on_one_slot_ends_and_is_walked_depth_first() {
    let mut it = Recursion::new();
    it.run(12);
    assert_eq!(it.value, Some(144));
    assert!(it.main.is_idle() && it.runner.is_idle());
    assert_eq!(it.most_parked, 18, "of 143 tasks with children");
}

/// What the runner would do if its callers did not hear that tasks are parked.
#[test]
fn without_word_of_parked_tasks_the_windows_stay_full() {
    let mut main = Member::new(MAIN, ROOT);
    let joined = FromCoordinator::RunnerJoined { class: class(), runner: RUNNER };
    effects(|all| main.receive(joined, all));
    let sent = |effects: &[MemberEffect]| {
        effects.iter().filter(|it| matches!(it, MemberEffect::ToCallee { .. })).count()
    };
    let sends: Vec<usize> = (0..3).map(|_| sent(&effects(|all| _ = main.run_task(task(), all)))).collect();
    assert_eq!(sends, [1, 1, 0]);
    let parked = ToCaller::Parked { call: CallNumber(1) };
    let sends = effects(|all| main.receive_from_callee(RUNNER, parked, all));
    let (call, TaskSpec { function, arguments, needs, .. }) = (CallNumber(3), task());
    let frame = ToCallee::Run {
        call,
        task: crate::TaskRequest { function, depth: 0, arguments, needs, resume: None, store_as: None },
        carries: Vec::new(),
    };
    assert_eq!(sends, [MemberEffect::ToCallee { to: RUNNER, frame }]);
}
