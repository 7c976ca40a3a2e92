//! The simulated machine without a cluster: work is retimed, signals end it, orphans end themselves.

use cohabit_types::{Outcome, RankId, Signal, StopReason, Time};
use cohabit_worker_core::{Lease, RankExit, RankStart, WorkerEvent};

use super::kit::*;
use crate::event_queue::EventQueue;
use crate::machine::{Hardware, Outbox, RankTimer, SimMachine};
use crate::machine_spec::MachineSpec;
use crate::process::StartConditions;
use crate::program::{SigtermBehaviour, SimProgram};

/// A machine with the devices `node-0` and `node-1`, whose executors wait 120 s for a daemon.
pub(super) fn machine() -> SimMachine {
    SimMachine::new(MachineSpec::new("node", 2), Hardware::default(), secs(120))
}

pub(super) fn spawn(machine: &mut SimMachine, start: RankStart) {
    machine.spawn(at(0), start, StartConditions::IDEAL, &mut Outbox::default()).unwrap();
}

/// A machine with a queue of its own.
struct Alone {
    machine: SimMachine,
    queue: EventQueue<RankTimer>,
    ended: Vec<(RankId, u64, RankExit)>,
}

impl Alone {
    fn new() -> Alone {
        Alone { machine: machine(), queue: EventQueue::new(), ended: Vec::new() }
    }

    fn does(mut self, now: Time, act: impl FnOnce(&mut SimMachine, Time, &mut Outbox)) -> Alone {
        let mut out = Outbox::default();
        act(&mut self.machine, now, &mut out);
        self.take(now, out);
        self
    }

    fn take(&mut self, now: Time, out: Outbox) {
        out.timers.into_iter().for_each(|(at, timer)| self.queue.put(at, timer));
        for event in out.events {
            if let WorkerEvent::Exited(rank, ending) = event {
                self.ended.push((rank, now.as_micros() / 1_000_000, ending));
            }
        }
    }

    fn until(mut self, end: Time) -> Alone {
        while let Some((now, timer)) = self.queue.next() {
            if now > end {
                self.queue.put(now, timer);
                break;
            }
            let mut out = Outbox::default();
            self.machine.handle_timer(now, timer, &mut out);
            self.take(now, out);
        }
        self
    }

    fn spawn(self, now: Time, start: RankStart) -> Alone {
        self.does(now, |machine, now, out| machine.spawn(now, start, StartConditions::IDEAL, out).unwrap())
    }

    /// The number of each job with the second at which it ended.
    fn ends(&self) -> Vec<(u64, u64)> {
        self.ended.iter().map(|(rank, at, _)| (rank.attempt.job.number, *at)).collect()
    }
}

fn rank(number: u64) -> RankId {
    cohabit_types::JobId::new(number).attempt(1).rank(0)
}

#[test]
fn remaining_work_is_retimed_when_co_located_jobs_change() {
    let alone = Alone::new()
        .spawn(at(0), start(1, work_on(500, 100), &["node-0"]))
        .until(at(50))
        .spawn(at(50), start(2, work_on(500, 20), &["node-0"]))
        .spawn(at(50), start(3, work_on(500, 10), &["node-1"]))
        .until(at(1_000));
    // Job 2 takes 20 s at a slowdown of 1.895, which costs job 1 17.9 s. Job 3 is alone on the other device.
    assert_eq!(alone.ends(), [(3, 60), (2, 88), (1, 118)]);
    assert_eq!(
        alone.machine.accounts().device_time[&rank(1).attempt] / 1_000_000_000,
        58,
        "half a device for 117.9 s"
    );
}

#[test]
fn a_process_on_two_devices_is_as_fast_as_on_the_more_crowded_one() {
    let alone = Alone::new()
        .spawn(at(0), start(1, work_on(500, 100), &["node-0", "node-1"]))
        .spawn(at(0), start(2, work_on(500, 1_000), &["node-1"]))
        .until(at(500));
    assert_eq!(alone.ends(), [(1, 189)]);
}

#[test]
fn an_orphan_is_terminated_then_killed_unless_a_daemon_returns() {
    let stubborn = SimProgram { on_term: SigtermBehaviour::Ignores, ..SimProgram::working(secs(1_000)) };
    let orphaned = |lease_at: u64| {
        Alone::new()
            .spawn(at(0), start(1, stubborn.job(), &["node-0"]))
            .until(at(10))
            .does(at(10), |machine, now, out| machine.lease(now, rank(1), Lease::Orphaned, out))
            .until(at(lease_at))
            .does(at(lease_at), |machine, now, out| {
                machine.gain_contact();
                machine.lease(now, rank(1), Lease::Held, out);
            })
            .until(at(500))
    };
    assert_eq!(orphaned(129).ends(), []);
    let late = orphaned(131);
    assert_eq!(late.ends(), [(1, 160)], "120 s until it is an orphan, 30 s of grace");
    let ending = &late.ended[0].2;
    assert_eq!(
        (&ending.outcome, ending.stopped),
        (&Outcome::Signalled(Signal::KILL), Some(StopReason::Orphaned))
    );
}

#[test]
fn outcomes_stay_on_the_disk_until_they_are_acknowledged() {
    let mut alone = Alone::new().spawn(at(0), start(1, work(10), &["node-0"])).until(at(100));
    assert_eq!(alone.machine.find_ranks(at(0), &mut Outbox::default()).len(), 1);
    alone.machine.forget(rank(1));
    assert!(alone.machine.is_clean());
}
