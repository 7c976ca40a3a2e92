//! Attempts that were ordered in advance.

use cohabit_types::{
    AttemptId, JobId, Order, Outcome, Predecessor, RankId, Report, RunOrder, Span, StopReason, Time,
};

use super::gpu_kit::{rank_of, sharer};
use super::kit::*;
use crate::rank::never_started;
use crate::{RankExit, WorkerEffect, WorkerEvent};

/// The attempts that follow [`ATTEMPT`].
const SECOND: AttemptId = JobId::new(8).attempt(1);
const THIRD: AttemptId = JobId::new(9).attempt(1);

/// So long it waits.
const WITHIN: Span = Span::from_millis(250);

/// One rank of this attempt, after another one.
fn in_advance(attempt: AttemptId, after: AttemptId) -> RunOrder {
    RunOrder { attempt, after: Some(Predecessor { attempt: after, within: WITHIN }), ..order(spec(), 1) }
}

fn withdraw(attempt: AttemptId) -> WorkerEvent {
    WorkerEvent::Order(Order::Withdraw(attempt))
}

/// The report that an attempt was given back at this time.
fn given_back(attempt: AttemptId, at: Time, why: StopReason) -> WorkerEffect {
    let RankExit { outcome, stopped, at } = never_started(at, why);
    let (rank, usage) = (attempt.rank(0), Vec::new());
    WorkerEffect::Report(Report::Ended { rank, outcome, stopped, progress: None, at, usage })
}

/// What a worker does now: the ends that it reports and the ranks that it starts, in their order.
fn ends_and_starts(worker: &mut TestWorker) -> Vec<(&'static str, RankId)> {
    let name = |effect| {
        if let WorkerEffect::Report(Report::Ended { rank, .. }) = effect {
            return Some(("ended", rank));
        }
        if let WorkerEffect::Spawn(start) = effect { Some(("started", start.rank)) } else { None }
    };
    worker.take_effects().into_iter().filter_map(name).collect()
}

/// A worker whose one running rank two attempts follow.
fn followed() -> TestWorker {
    let worker = TestWorker::running(spec());
    worker.run(in_advance(SECOND, ATTEMPT)).run(in_advance(THIRD, SECOND)).does_nothing()
}

#[test]
fn each_begins_when_the_one_before_it_has_ended_and_after_that_was_told() {
    let mut worker = followed().exited(0, Outcome::Exited(0));
    assert_eq!(ends_and_starts(&mut worker), [("ended", RANK), ("started", SECOND.rank(0))]);
    let mut worker =
        worker.event(WorkerEvent::Spawned(SECOND.rank(0))).ends(SECOND.rank(0), Outcome::Exited(1));
    assert_eq!(ends_and_starts(&mut worker), [("ended", SECOND.rank(0)), ("started", THIRD.rank(0))]);
}

/// The first one waits for the MPS server of its GPU when the GPU is lost.
#[test]
fn one_that_follows_what_is_refused_with_its_gpu_does_not_wait_on() {
    let (first, second) = (sharer(1), sharer(2));
    let after = Some(Predecessor { attempt: first.attempt, within: WITHIN });
    let worker = TestWorker::with_gpus().run(first).run(RunOrder { after, ..second }).forget_effects();
    assert_eq!(ends_and_starts(&mut worker.xid(79)), [1, 2].map(|job| ("ended", rank_of(job))));
}

#[test]
fn one_that_follows_what_has_ended_begins_at_once() {
    TestWorker::running(spec())
        .exited(0, Outcome::Exited(0))
        .forget_effects()
        .run(in_advance(SECOND, ATTEMPT))
        .spawns(&[SECOND.rank(0)]);
}

#[test]
fn one_that_is_withdrawn_does_not_begin_and_the_next_waits_in_its_place() {
    let mut worker =
        followed().event(withdraw(SECOND)).does([given_back(SECOND, at(100), StopReason::Superseded)]);
    worker = worker.exited(0, Outcome::Exited(0));
    assert_eq!(ends_and_starts(&mut worker), [("ended", RANK), ("started", THIRD.rank(0))]);
}

#[test]
fn one_that_has_begun_is_not_withdrawn() {
    followed().exited(0, Outcome::Exited(0)).forget_effects().event(withdraw(SECOND)).does_nothing();
}

#[test]
fn a_stop_gives_back_what_has_not_begun() {
    let stop = Order::Stop { attempt: SECOND, why: StopReason::Cancelled };
    followed().event(WorkerEvent::Order(stop)).does([given_back(SECOND, at(100), StopReason::Cancelled)]);
}

#[test]
fn what_has_waited_for_too_long_is_given_back() {
    let (worker, expiry) = (followed(), at(100) + WITHIN);
    assert_eq!(worker.worker.deadline(), Some(expiry));
    let both = [SECOND, THIRD].map(|attempt| given_back(attempt, expiry, StopReason::Superseded));
    worker.until(101).does(both).exited(0, Outcome::Exited(0)).does([ended(
        RANK,
        Outcome::Exited(0),
        None,
        101,
    )]);
}

#[test]
fn nothing_begins_once_the_link_was_lost() {
    let mut worker = followed().unlink().exited(0, Outcome::Exited(0));
    assert_eq!(ends_and_starts(&mut worker), []);
    let held: Vec<RankId> = worker.worker.held().into_iter().map(|held| held.rank).collect();
    assert_eq!(held, [RANK], "the head learns from this that the others have not begun");
}
