//! Jobs that run in a snapshot of their code.

use cohabit_types::{
    ApplicationWork, Entrypoint, JobId, JobSpec, Order, Outcome, RankId, RunOrder, RunnerRole, RunnerWork,
    StartFailure, StopReason,
};

use super::kit::{ATTEMPT, RANK, TestWorker, at, code, ended, found, order, spec};
use crate::{RankExit, WorkerEffect, WorkerEvent};

const RELEASED: WorkerEffect = WorkerEffect::ReleaseCode(ATTEMPT);

fn with_code() -> JobSpec {
    JobSpec { code: Some(code()), ..spec() }
}

/// A linked worker that fetches the code of so many ranks, and has done nothing else.
fn fetching(ranks: u32) -> TestWorker {
    let mut worker = TestWorker::linked().run(order(with_code(), ranks));
    let effects = worker.take_effects();
    assert!(matches!(&effects[..], [WorkerEffect::FetchCode(start)] if start.rank == RANK), "{effects:?}");
    worker
}

fn fetched(result: Result<(), StartFailure>) -> WorkerEvent {
    WorkerEvent::CodeFetched(ATTEMPT, result)
}

#[test]
fn the_ranks_of_an_attempt_wait_for_one_copy_of_its_code() {
    fetching(2).event(fetched(Ok(()))).spawns(&[RANK, ATTEMPT.rank(1)]);
}

#[test]
fn the_parts_of_an_application_share_one_copy_of_its_program() {
    let root = ApplicationWork { program: "search".into(), arguments: vec![], max_gpus: None };
    let root = JobSpec { entrypoint: Entrypoint::Application(root), ..with_code() };
    let child = RunnerWork {
        application: ATTEMPT,
        program: "search".into(),
        role: RunnerRole::Actor,
        arguments: vec![],
        node: None,
        ranks: 1,
    };
    let child = JobSpec { entrypoint: Entrypoint::Runner(child), ..with_code() };
    let of_child = JobId::new(9).attempt(1);
    let child = RunOrder { attempt: of_child, ..order(child, 1) };
    let worker = TestWorker::linked().run(order(root, 1)).run(child);
    let fetching = worker.forget_effects();
    let mut worker = fetching.event(fetched(Ok(())));
    let started: Vec<RankId> = spawned(&mut worker);
    assert_eq!(started, [RANK, of_child.rank(0)]);
    let done = Outcome::Exited(0);
    let worker = worker.exited(0, done.clone()).does([ended(RANK, done.clone(), None, 100)]);
    let end = RankExit { outcome: done.clone(), stopped: None, at: at(100) };
    let worker = worker.event(WorkerEvent::Exited(of_child.rank(0), end));
    worker.does([ended(of_child.rank(0), done, None, 100), RELEASED]);
}

fn spawned(worker: &mut TestWorker) -> Vec<RankId> {
    let rank = |effect| if let WorkerEffect::Spawn(start) = effect { Some(start.rank) } else { None };
    worker.take_effects().into_iter().filter_map(rank).collect()
}

#[test]
fn a_job_without_a_snapshot_fetches_nothing() {
    TestWorker::linked().run(order(spec(), 1)).spawns(&[RANK]);
}

#[test]
fn the_copy_is_released_when_the_last_rank_has_ended() {
    let worker = fetching(2).event(fetched(Ok(()))).forget_effects().spawned(0).forget_effects();
    let failure = StartFailure::Other("no".into());
    let never = Outcome::NotStarted(failure.clone());
    let worker = worker.spawn_failed(1, failure).does([ended(ATTEMPT.rank(1), never, None, 100)]);
    let done = Outcome::Exited(0);
    worker.exited(0, done.clone()).does([ended(RANK, done, None, 100), RELEASED]);
}

#[test]
fn ranks_whose_code_cannot_be_fetched_have_not_started() {
    let failure = StartFailure::Other("its code is gone".into());
    let outcome = Outcome::NotStarted(failure.clone());
    let end = |rank| ended(ATTEMPT.rank(rank), outcome.clone(), None, 100);
    fetching(2).event(fetched(Err(failure))).does([end(0), end(1), RELEASED]);
}

#[test]
fn a_stop_does_not_wait_for_the_code() {
    let never = Outcome::NotStarted(StartFailure::Other("it was stopped before it could start".into()));
    let stopped = ended(RANK, never, Some(StopReason::Cancelled), 100);
    let worker = fetching(1).stop(StopReason::Cancelled).does([stopped, RELEASED]);
    // It may be there nevertheless.
    worker.event(fetched(Ok(()))).does([RELEASED]);
}

/// On a node without the root of an application, its parts there may end while their program is fetched.
#[test]
fn a_part_that_comes_while_an_abandoned_copy_is_made_gets_one_of_its_own() {
    let child = |job: u64| {
        let work = RunnerWork {
            application: ATTEMPT,
            program: "search".into(),
            role: RunnerRole::Actor,
            arguments: vec![],
            node: None,
            ranks: 1,
        };
        let spec = JobSpec { entrypoint: Entrypoint::Runner(work), ..with_code() };
        RunOrder { attempt: JobId::new(job).attempt(1), ..order(spec, 1) }
    };
    let stop = Order::Stop { attempt: JobId::new(8).attempt(1), why: StopReason::Cancelled };
    let worker = TestWorker::linked().run(child(8)).event(WorkerEvent::Order(stop)).forget_effects();
    let mut worker = worker.run(child(9));
    assert_eq!(worker.take_effects(), []);
    let mut worker = worker.event(fetched(Err(StartFailure::NodeProblem("nobody waits".into()))));
    let effects = worker.take_effects();
    let later = JobId::new(9).attempt(1).rank(0);
    assert!(
        matches!(&effects[..], [RELEASED, WorkerEffect::FetchCode(start)] if start.rank == later),
        "{effects:?}"
    );
    worker.event(fetched(Ok(()))).spawns(&[later]);
}

#[test]
fn a_broken_link_ends_the_wait() {
    fetching(1).unlink().does([RELEASED]).event(fetched(Ok(()))).does([RELEASED]);
}

#[test]
fn a_copy_that_an_earlier_daemon_made_is_released_too() {
    let worker = TestWorker::unlinked().event(WorkerEvent::Found(Box::new(found(with_code(), None))));
    let worker = worker.link().forget_effects();
    let done = Outcome::Exited(0);
    worker.exited(0, done.clone()).does([ended(RANK, done, None, 100), RELEASED]);
}
