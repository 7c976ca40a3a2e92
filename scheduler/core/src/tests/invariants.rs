//! A broken state is found and named, whatever part of it is wrong.

use std::sync::Arc;

use cohabit_types::{Filter, JobRevision, JobState, Outcome, Time};

use super::kit::*;
use crate::Head;
use crate::job::RankPhase;

/// One job that ended, one that runs, and one that waits.
fn head() -> Head {
    let mut test = TestHead::with_devices(1);
    for _ in 0..3 {
        test.submit(gpus(1));
    }
    test.ended(rank(1, 1), Outcome::Exited(0), None);
    let states: Vec<JobState> = (1..=3).map(|number| test.state(job(number))).collect();
    assert_eq!(states, [JobState::Completed, JobState::Running, JobState::Pending]);
    test.head
}

#[test]
fn each_broken_invariant_is_named() {
    type Break = fn(&mut Head);
    let cases: [(Break, &str); 12] = [
        (|head| head.nodes.values_mut().for_each(|node| node.cpus_used += 1), "on node node1 hold 0 cores"),
        (
            |head| head.nodes.values_mut().for_each(|node| node.jobs.clear()),
            "the jobs on node node1 are 2, but its ledger says none",
        ),
        (
            |head| head.nodes.values_mut().for_each(|node| node.devices[0].jobs.clear()),
            "device gpu-0 of node",
        ),
        (|head| head.nodes.clear(), "job 2 is placed on node"),
        (|head| drop(head.submissions.remove(&2)), "job 2 has no submission"),
        (|head| drop(head.jobs.remove(&job(3))), "job 3 is queued as eligible, but it is unknown"),
        (
            |head| head.volatile.queue.remove(0, job(3)),
            "place 1 of the queue has nothing instead of job 3 of priority 0",
        ),
        (
            |head| {
                head.volatile.queue.remove(0, job(3));
                head.volatile.queue.insert(7, job(3));
            },
            "place 1 of the queue has job 3 of priority 7 instead of job 3 of priority 0",
        ),
        (
            |head| head.volatile.queue.insert(-1, job(2)),
            "the queue has job 2 of priority -1, which is not eligible",
        ),
        (|head| head.active.clear(), "job 2 is RUNNING, and it is not in the set of active jobs"),
        (|head| head.ended.clear(), "job 1 is COMPLETED, but the set of ended jobs does not have it"),
        (|head| head.submission_mut(3).unwrap().state_counts.clear(), "the jobs of submission 3 are"),
    ];
    assert_eq!(head().check(), Ok(()));
    for (break_it, expected) in cases {
        let mut head = head();
        break_it(&mut head);
        let sentence = head.check().unwrap_err().to_string();
        assert!(sentence.contains(expected), "{sentence}");
        read_all(&head);
    }
}

/// Asks every question about every job; a broken state must not end the head that serves reads.
fn read_all(head: &Head) {
    let reader = head.at(Time::from_micros(5_000_000));
    reader.list(&Filter { limit: 100, ..Filter::default() });
    head.node_records();
    for id in (1..=3).map(job) {
        let shown = reader.show(&[id]).is_ok();
        assert_eq!(reader.explain(id).is_ok(), shown, "job {id}");
        head.job_history(id);
        head.worker_of(id.attempt(1).rank(0));
        if let Some(revision) = head.revision(id) {
            reader.changed_since(&[JobRevision { job: id, revision }]).unwrap();
        }
    }
}

#[test]
fn an_attempt_is_live_exactly_while_a_rank_of_it_is() {
    let mut head = head();
    let ended = Arc::make_mut(head.jobs.get_mut(&job(1)).unwrap());
    ended.ended_attempts[0].attempt.ranks[0].phase = RankPhase::Running;
    let sentence = head.check().unwrap_err().to_string();
    assert_eq!(sentence, "attempt 1 of job 1 ended, but a rank of it is live");
}
