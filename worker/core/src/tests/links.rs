//! Lost links and restarted daemons: leases, repeated reports, and recovered ranks.

use cohabit_types::{AttemptProgress, Outcome, Report, StopReason};

use super::kit::*;
use crate::{FoundRank, Lease, RankExit, StopStep, WorkerEffect, WorkerEvent};

const LOST: Outcome = Outcome::Exited(143);

fn ending(stopped: Option<StopReason>, secs: u64) -> RankExit {
    RankExit { outcome: LOST, stopped, at: at(secs) }
}

#[test]
fn a_lost_link_orphans_running_ranks_and_a_new_one_renews_their_leases() {
    TestWorker::running(spec())
        .unlink()
        .does([lease(RANK, Lease::Orphaned)])
        .until(160)
        .link()
        .does([lease(RANK, Lease::Held), started(RANK, 100)]);
}

#[test]
fn an_end_is_reported_over_every_new_link_until_it_is_acknowledged() {
    let end = || ended(RANK, LOST, None, 100);
    TestWorker::running(spec())
        .unlink()
        .does([lease(RANK, Lease::Orphaned)])
        .exited(0, LOST)
        .does_nothing()
        .link()
        .does([end()])
        .unlink()
        .link()
        .does([end()])
        .acknowledge(0)
        .does([WorkerEffect::Forget(RANK)])
        .unlink()
        .link()
        .does_nothing();
}

#[test]
fn a_rank_that_starts_without_a_link_is_orphaned_at_once() {
    TestWorker::linked()
        .run(order(spec(), 1))
        .spawns(&[RANK])
        .unlink()
        .does_nothing()
        .spawned(0)
        .does([lease(RANK, Lease::Orphaned)])
        .link()
        .does([lease(RANK, Lease::Held), started(RANK, 100)]);
}

#[test]
fn progress_is_reported_again_over_a_new_link() {
    let batch = |progress| {
        WorkerEffect::Report(Report::Progress(vec![AttemptProgress { attempt: ATTEMPT, progress }]))
    };
    let relinked = [lease(RANK, Lease::Orphaned), lease(RANK, Lease::Held), started(RANK, 100)];
    TestWorker::running(spec())
        .progress(0, step(1))
        .until(101)
        .does([batch(step(1))])
        .unlink()
        .until(200)
        .link()
        .does(relinked)
        .until(201)
        .does([batch(step(1))]);
}

#[test]
fn a_rank_that_its_executor_stopped_as_orphan_has_that_reason() {
    TestWorker::running(spec())
        .unlink()
        .event(WorkerEvent::Exited(RANK, ending(Some(StopReason::Orphaned), 240)))
        .does([lease(RANK, Lease::Orphaned)])
        .link()
        .does([ended(RANK, LOST, Some(StopReason::Orphaned), 240)]);
}

#[test]
fn an_adopted_rank_keeps_its_time_limit() {
    TestWorker::unlinked()
        .event(WorkerEvent::Found(Box::new(found(limited(300, None), None))))
        .does_nothing()
        .link()
        .does([lease(RANK, Lease::Held), started(RANK, 10)])
        .until(309)
        .does_nothing()
        .until(310)
        .does(term(RANK, StopReason::TimeLimit, 340));
}

#[test]
fn a_recovered_end_is_reported() {
    TestWorker::unlinked()
        .event(WorkerEvent::Found(Box::new(found(spec(), Some(ending(None, 90))))))
        .link()
        .does([ended(RANK, LOST, None, 90)])
        .acknowledge(0)
        .does([WorkerEffect::Forget(RANK)]);
}

#[test]
fn a_recovered_end_has_the_reason_that_its_executor_knew() {
    for why in [None, Some(StopReason::TimeLimit), Some(StopReason::MpsFaultVictim)] {
        TestWorker::unlinked()
            .event(WorkerEvent::Found(Box::new(found(limited(300, None), Some(ending(why, 320))))))
            .link()
            .does([ended(RANK, LOST, why, 320)]);
    }
}

/// A rank of a job with a warning and a grace of 30 s that is found at second 100, being stopped.
fn found_stopping(why: StopReason, next: StopStep, due_at: u64) -> TestWorker {
    let left =
        FoundRank { stopping: Some(stopping(why, next, due_at)), ..found(limited(1_000, Some(60)), None) };
    TestWorker::unlinked().event(WorkerEvent::Found(Box::new(left))).does_nothing()
}

#[test]
fn a_stop_continues_where_the_earlier_daemon_was() {
    let victim = StopReason::MpsFaultVictim;
    found_stopping(victim, StopStep::Kill, 107)
        .until(106)
        .does_nothing()
        .until(107)
        .does(kill(RANK, victim, 107))
        .exited(0, LOST)
        .link()
        .does([ended(RANK, LOST, Some(victim), 107)]);
    let preempted = StopReason::Preempted;
    found_stopping(preempted, StopStep::Terminate, 130)
        .until(130)
        .does(term(RANK, preempted, 160))
        .until(160)
        .does(kill(RANK, preempted, 160));
}

#[test]
fn an_overdue_step_is_taken_at_once() {
    let why = StopReason::Cancelled;
    found_stopping(why, StopStep::Kill, 50).until(100).does(kill(RANK, why, 100));
    found_stopping(why, StopStep::Terminate, 50).until(100).does(term(RANK, why, 130));
}

#[test]
fn a_stop_that_is_ordered_again_after_a_restart_changes_nothing() {
    found_stopping(StopReason::Cancelled, StopStep::Kill, 120)
        .link()
        .forget_effects()
        .stop(StopReason::Superseded)
        .does_nothing()
        .exited(0, LOST)
        .does([ended(RANK, LOST, Some(StopReason::Cancelled), 100)]);
}

#[test]
fn the_time_limit_holds_without_a_link() {
    TestWorker::running(limited(300, None))
        .unlink()
        .does([lease(RANK, Lease::Orphaned)])
        .until(400)
        .does(term(RANK, StopReason::TimeLimit, 430));
}

#[test]
fn the_user_id_of_a_live_rank_is_reported_over_every_link() {
    let private_user = || WorkerEffect::Report(Report::PrivateUser { rank: RANK, uid: 61_184 });
    TestWorker::running(spec())
        .event(WorkerEvent::PrivateUser(RANK, 61_184))
        .does([private_user()])
        .unlink()
        .forget_effects()
        .link()
        .does([lease(RANK, Lease::Held), started(RANK, 100), private_user()])
        .exited(0, Outcome::Exited(0))
        .forget_effects()
        .event(WorkerEvent::PrivateUser(RANK, 61_185))
        .does_nothing();
}
