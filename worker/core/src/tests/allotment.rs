//! The head changes the cores and the host memory of attempts that run.

use cohabit_types::{Bytes, HostShare, Order, Outcome, Report};

use super::kit::{ATTEMPT, TestWorker, order, spec};
use crate::{WorkerEffect, WorkerEvent};

const fn cores(cpus: u32) -> HostShare {
    HostShare { cpus, memory: Bytes(1 << 30) }
}

fn ordered(cpus: u32) -> WorkerEvent {
    WorkerEvent::Order(Order::Allot { attempt: ATTEMPT, host: cores(cpus) })
}

const fn allotted(cpus: u32) -> WorkerEvent {
    WorkerEvent::Allotted(ATTEMPT, Some(cores(cpus)))
}

fn reported(cpus: u32) -> WorkerEffect {
    WorkerEffect::Report(Report::Allotted { attempt: ATTEMPT, host: cores(cpus) })
}

/// A linked worker on which two ranks of an attempt run.
fn running() -> TestWorker {
    TestWorker::linked().run(order(spec(), 2)).spawned(0).spawned(1).forget_effects()
}

#[test]
fn the_head_hears_of_limits_that_are_in_force() {
    let worker = running().event(ordered(6)).does([WorkerEffect::Allot(ATTEMPT, cores(6))]);
    worker.event(allotted(5)).does([reported(5)]);
}

#[test]
fn limits_of_ranks_that_are_being_started_do_not_change() {
    let starting = TestWorker::linked().run(order(spec(), 2)).spawned(0).forget_effects();
    starting.event(ordered(6)).does_nothing();
}

#[test]
fn the_last_order_is_in_force_in_the_end_and_answered_once() {
    let worker = running().event(ordered(6)).forget_effects();
    let worker = worker.event(ordered(12)).event(ordered(3)).does_nothing();
    let worker = worker.event(allotted(6)).does([WorkerEffect::Allot(ATTEMPT, cores(3))]);
    worker.event(allotted(3)).does([reported(3)]).event(allotted(3)).does_nothing();
}

#[test]
fn a_change_that_outlives_its_link_is_answered_over_the_next() {
    let worker = running().event(ordered(6)).unlink().link().forget_effects();
    worker.event(ordered(6)).does_nothing().event(allotted(6)).does([reported(6)]);
}

#[test]
fn nothing_is_reported_of_an_attempt_that_has_ended() {
    let worker = running().event(ordered(6)).exited(0, Outcome::Exited(0)).exited(1, Outcome::Exited(0));
    let worker = worker.forget_effects();
    worker.event(WorkerEvent::Allotted(ATTEMPT, None)).does_nothing().event(ordered(3)).does_nothing();
}
