//! Both ends of a stream with frames on their way, whose runners end: nothing is missing, nothing comes
//! twice, nobody waits for ever.

use std::collections::VecDeque;

use bytes::Bytes;
use cohabit_types::{RankId, Span};

use super::kit::{MAIN, ROOT, class, effects, inline, member, task};
use crate::{
    CallNumber, FromCoordinator, MAX_UNREAD_ITEMS, Member, MemberEffect, TaskSpec, Ticket, ToCallee, ToCaller,
};

/// A reader, and the runner that lives at present.
struct Ends {
    reader: Member,
    runner: Member,
    name: RankId,
    to_runner: VecDeque<ToCallee>,
    to_reader: VecDeque<ToCaller>,
    /// The items that the present runner has made, and how many of them it makes.
    made: u64,
    length: u64,
    ticket: Option<Ticket>,
    arrived: VecDeque<u64>,
    read: Vec<u64>,
    has_ended: bool,
    most_unread: usize,
}

impl Ends {
    fn new(length: u64) -> Ends {
        let mut it = Ends {
            reader: Member::new(MAIN, ROOT),
            runner: Member::new(member(3), ROOT),
            name: member(3),
            to_runner: VecDeque::new(),
            to_reader: VecDeque::new(),
            made: 0,
            length,
            ticket: None,
            arrived: VecDeque::new(),
            read: Vec::new(),
            has_ended: false,
            most_unread: 0,
        };
        let spec = TaskSpec { retries: 1_000, ..task() };
        it.act_reader(|reader, all| _ = reader.run_task(spec, all).unwrap());
        it.join();
        it
    }

    fn join(&mut self) {
        let (class, runner) = (class(), self.name);
        self.runner = Member::new(runner, ROOT);
        self.act_runner(|it, all| it.receive(FromCoordinator::ServeTasks { class }, all));
        let class = super::kit::class();
        self.act_reader(|it, all| it.receive(FromCoordinator::RunnerJoined { class, runner }, all));
    }

    /// The runner dies, with the frames that were on their way.
    fn kill(&mut self) {
        let ended = self.name;
        self.to_runner.clear();
        self.to_reader.clear();
        (self.made, self.ticket) = (0, None);
        self.act_reader(|it, all| it.receive(FromCoordinator::MemberEnded { member: ended }, all));
        self.name = member(ended.job().number + 1);
        self.join();
    }

    fn act_reader(&mut self, act: impl FnOnce(&mut Member, &mut Vec<MemberEffect>)) {
        for effect in effects(|all| act(&mut self.reader, all)) {
            if let MemberEffect::ToCallee { frame, .. } = effect {
                self.to_runner.push_back(frame);
            } else if let MemberEffect::Item { number, item, .. } = effect {
                assert_eq!(item, number.to_string());
                self.arrived.push_back(number);
            } else if let MemberEffect::Finish { result, .. } = effect {
                assert_eq!(result, Ok(inline("")));
                self.has_ended = true;
            }
        }
        self.most_unread = self.most_unread.max(self.arrived.len());
    }

    fn act_runner(&mut self, act: impl FnOnce(&mut Member, &mut Vec<MemberEffect>)) {
        for effect in effects(|all| act(&mut self.runner, all)) {
            if let MemberEffect::ToCaller { frame, .. } = effect {
                self.to_reader.push_back(frame);
            } else if let MemberEffect::StartTask { ticket, .. } = effect {
                self.ticket = Some(ticket);
            }
        }
    }

    fn make(&mut self) {
        let Some(ticket) = self.ticket.filter(|ticket| self.runner.may_make(*ticket)) else { return };
        if self.made == self.length {
            self.ticket = None;
            self.act_runner(|it, all| it.task_ended(ticket, Ok(inline("")), Vec::new(), Span::ZERO, all));
        } else {
            self.made += 1;
            let item = Bytes::from(self.made.to_string());
            self.act_runner(|it, all| it.item(ticket, item, Vec::new(), all).unwrap());
        }
    }

    fn read(&mut self) {
        if let Some(number) = self.arrived.pop_front() {
            self.read.push(number);
            self.act_reader(|it, all| it.read(CallNumber(1), all));
        }
    }

    /// Draws what happens next. A runner dies once in so many steps.
    fn step(&mut self, drawn: u64, deaths: u64) {
        match drawn % 5 {
            0 | 1 => self.make(),
            2 => self.read(),
            3 => {
                if let Some(frame) = self.to_runner.pop_front() {
                    self.act_runner(|it, all| it.receive_from_caller(MAIN, frame, all));
                }
            }
            _ => {
                if let Some(frame) = self.to_reader.pop_front() {
                    let from = self.name;
                    self.act_reader(|it, all| it.receive_from_callee(from, frame, all));
                }
            }
        }
        if (drawn / 5).is_multiple_of(deaths) {
            self.kill();
        }
    }
}

#[test]
fn every_item_is_read_once_and_in_order_whatever_runners_do() {
    for seed in 0..200_u64 {
        let (mut it, mut drawn) = (Ends::new(40), seed);
        let deaths = if seed % 2 == 0 { u64::MAX } else { 200 };
        for _ in 0..100_000 {
            if it.has_ended && it.arrived.is_empty() {
                break;
            }
            drawn = drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            it.step(drawn >> 33, deaths);
        }
        assert_eq!(it.read, (1..=40).collect::<Vec<u64>>(), "seed {seed}");
        assert!(it.has_ended && it.most_unread as u64 <= MAX_UNREAD_ITEMS, "seed {seed}: {}", it.most_unread);
        assert!(it.reader.is_idle(), "seed {seed}");
    }
}
