//! The virtual machine compared with a naive one that works unit by unit, and with every possible schedule.

use std::collections::BTreeMap;

use cohabit_types::{JobId, Span, Time};
use proptest::prelude::*;

use crate::queue::virtual_srpt_machine::VirtualSrptMachine;

fn micros(at: u64) -> Time {
    Time::from_micros(at)
}

/// Jobs as (arrival, work), numbered from 1, ordered by arrival.
fn jobs(most: usize, latest: u64, work: u128) -> impl Strategy<Value = Vec<(u64, u128)>> {
    prop::collection::vec((0..=latest, 0..=work), 1..=most).prop_map(|mut jobs| {
        jobs.sort_unstable();
        jobs
    })
}

/// When each job completes, by number, in the order of completion.
fn completions(speed: u64, jobs: &[(u64, u128)]) -> Vec<(u64, u64)> {
    let mut machine = VirtualSrptMachine::default();
    machine.set_speed(speed);
    let mut turns = Vec::new();
    for (number, (arrival, work)) in (1..).zip(jobs) {
        machine.advance(micros(*arrival), |job, at| turns.push((job.number, at.as_micros())));
        machine.release(micros(*arrival), JobId::new(number), *work);
    }
    while let Some(at) = machine.next_completion() {
        machine.advance(at, |job, at| turns.push((job.number, at.as_micros())));
    }
    assert!(machine.is_empty());
    turns
}

/// The same, unit of work by unit of work.
fn naive(speed: u64, jobs: &[(u64, u128)]) -> Vec<(u64, u64)> {
    let mut left: BTreeMap<u64, (u128, u64)> = BTreeMap::new();
    let mut turns = Vec::new();
    for now in 0.. {
        for (number, (arrival, work)) in (1..).zip(jobs).filter(|(_, (arrival, _))| *arrival == now) {
            left.insert(number, (*work, *arrival));
        }
        complete(&mut left, now, &mut turns);
        for _ in 0..speed {
            let first = left.iter().map(|(number, (left, arrival))| (*left, *arrival, *number)).min();
            if let Some((_, _, number)) = first {
                left.get_mut(&number).unwrap().0 -= 1;
                complete(&mut left, now + 1, &mut turns);
            }
        }
        if turns.len() == jobs.len() {
            return turns;
        }
    }
    unreachable!("time goes on until all have completed")
}

fn complete(left: &mut BTreeMap<u64, (u128, u64)>, now: u64, turns: &mut Vec<(u64, u64)>) {
    let mut done: Vec<(u64, u64)> =
        left.iter().filter(|(_, (left, _))| *left == 0).map(|(number, (_, at))| (*at, *number)).collect();
    done.sort_unstable();
    for (_, number) in done {
        left.remove(&number);
        turns.push((number, now));
    }
}

/// The least sum of completion times over all schedules, unit by unit.
fn best_sum(now: u64, jobs: &mut Vec<(u64, u128)>, known: &mut BTreeMap<(u64, Vec<u128>), u64>) -> u64 {
    let state = (now, jobs.iter().map(|(_, left)| *left).collect());
    if let Some(sum) = known.get(&state) {
        return *sum;
    }
    let served: Vec<usize> = (0..jobs.len()).filter(|at| jobs[*at].1 > 0 && jobs[*at].0 <= now).collect();
    let waits = jobs.iter().any(|(_, left)| *left > 0);
    let mut best = if waits { u64::MAX } else { 0 };
    for at in &served {
        jobs[*at].1 -= 1;
        let own = if jobs[*at].1 == 0 { now + 1 } else { 0 };
        best = best.min(own + best_sum(now + 1, jobs, known));
        jobs[*at].1 += 1;
    }
    if waits && served.is_empty() {
        best = best_sum(now + 1, jobs, known);
    }
    known.insert(state, best);
    best
}

proptest! {
    #[test]
    fn it_equals_a_naive_machine(speed in 1_u64..7, jobs in jobs(8, 12, 15)) {
        prop_assert_eq!(completions(speed, &jobs), naive(speed, &jobs));
    }

    #[test]
    fn no_schedule_has_a_smaller_sum_of_completion_times(jobs in jobs(4, 4, 4)) {
        let sum: u64 = completions(1, &jobs).iter().map(|(number, at)| {
            if jobs[*number as usize - 1].1 == 0 { 0 } else { *at }
        }).sum();
        prop_assert_eq!(sum, best_sum(0, &mut jobs.clone(), &mut BTreeMap::new()));
    }

    #[test]
    fn no_work_is_lost_or_made_whatever_the_time_steps(
        speed in 1_u64..5_000,
        jobs in jobs(20, 1_000, 100_000),
        cuts in prop::collection::btree_set(0_u64..2_000, 0..40),
    ) {
        let mut machine = VirtualSrptMachine::default();
        machine.set_speed(speed);
        for (number, (_, work)) in (1..).zip(&jobs) {
            machine.release(micros(0), JobId::new(number), *work);
        }
        let whole: u128 = jobs.iter().map(|(_, work)| *work).sum();
        for cut in cuts {
            machine.advance(micros(cut), |_, _| {});
            let left: u128 = machine.list_completions().map(|(task, _)| task.left).sum();
            prop_assert_eq!(left, whole.saturating_sub(u128::from(speed) * u128::from(cut)));
        }
    }

    #[test]
    fn listed_completions_come_true_if_no_job_arrives(speed in 1_u64..9, jobs in jobs(8, 0, 50)) {
        let mut machine = VirtualSrptMachine::default();
        machine.set_speed(speed);
        for (number, (_, work)) in (1..).zip(&jobs) {
            machine.release(micros(0), JobId::new(number), *work);
        }
        let listed = machine.list_completions();
        let listed = listed.map(|(task, at)| (task.job.number, at.unwrap().as_micros()));
        prop_assert_eq!(listed.collect::<Vec<_>>(), completions(speed, &jobs));
    }
}

#[test]
fn without_devices_no_work_is_done() {
    let mut machine = VirtualSrptMachine::default();
    machine.release(micros(0), JobId::new(1), 10);
    machine.advance(micros(1_000), |_, _| panic!("nothing is served"));
    assert_eq!((machine.next_completion(), machine.now()), (None, micros(1_000)));
    assert_eq!(machine.list_completions().next().unwrap().1, None);
    machine.set_speed(5);
    assert_eq!(machine.next_completion(), Some(micros(1_002)));
}

#[test]
fn a_change_of_speed_counts_from_its_moment() {
    let mut machine = VirtualSrptMachine::default();
    machine.set_speed(2);
    machine.release(micros(0), JobId::new(1), 10);
    machine.advance(micros(3), |_, _| panic!("it is not complete"));
    machine.set_speed(4);
    assert_eq!(machine.next_completion(), Some(micros(4)));
}

#[test]
fn a_removed_job_lets_the_next_one_be_served() {
    let mut machine = VirtualSrptMachine::default();
    machine.set_speed(1);
    machine.release(micros(0), JobId::new(1), 10);
    machine.release(micros(0), JobId::new(2), 20);
    machine.advance(micros(4), |_, _| {});
    assert_eq!((machine.remove(JobId::new(1)), machine.remove(JobId::new(1))), (Some(10), None));
    assert_eq!(machine.next_completion(), Some(micros(24)));
}

#[test]
fn a_revised_job_keeps_what_was_done_of_it() {
    let mut machine = VirtualSrptMachine::default();
    machine.set_speed(1);
    machine.release(micros(0), JobId::new(1), 10);
    machine.advance(micros(4), |_, _| {});
    machine.revise(JobId::new(1), 30);
    assert_eq!(machine.next_completion(), Some(micros(30)));
    machine.revise(JobId::new(1), 3);
    assert_eq!(machine.next_completion(), Some(micros(4)));
}

#[test]
fn huge_amounts_of_work_end_at_the_end_of_time() {
    let mut machine = VirtualSrptMachine::default();
    machine.set_speed(1);
    machine.release(micros(0), JobId::new(1), u128::MAX / 4);
    assert_eq!(machine.next_completion(), Some(Time::EPOCH + Span::from_micros(u64::MAX)));
}
