//! The worked example: three jobs on four devices, second by second.

use cohabit_types::{JobId, Span, Time};

use crate::FirstFit;
use crate::a_srpt::{ASrpt, ASrptOptions};
use crate::queue::virtual_srpt_machine::VirtualSrptMachine;
use crate::tests::cluster::{Ran, TestJob, run};
use crate::tests::kit::{anywhere, node};

fn seconds(seconds: f64) -> Time {
    Time::EPOCH + Span::from_secs_f64(seconds)
}

fn jobs() -> Vec<TestJob> {
    vec![
        TestJob::new(1, 0.0, anywhere(2), 8),
        TestJob::new(2, 1.0, anywhere(4), 2),
        TestJob::new(3, 2.0, anywhere(1), 2),
    ]
}

fn schedule(queue: &str) -> Vec<Ran> {
    let mut options = ASrptOptions::default();
    options.set("queue", queue).unwrap();
    let mut ran = run(&mut ASrpt::new(&options, FirstFit), vec![node(1, &[1_000; 4])], jobs());
    ran.sort_by_key(|it| it.job);
    ran
}

#[test]
fn the_virtual_turns_are_those_of_the_worked_example() {
    let mut machine = VirtualSrptMachine::default();
    machine.set_speed(4_000);
    let mut turns = Vec::new();
    for (number, arrival, devices, runtime) in [(1, 0.0, 2, 8), (2, 1.0, 4, 2), (3, 2.0, 1, 2)] {
        machine.advance(seconds(arrival), |job, at| turns.push((job.number, at)));
        machine.release(seconds(arrival), JobId::new(number), devices * 1_000 * runtime * 1_000_000);
    }
    machine.advance(seconds(100.0), |job, at| turns.push((job.number, at)));
    assert_eq!(turns, [(3, seconds(2.5)), (2, seconds(3.5)), (1, seconds(6.5))]);
}

#[test]
fn strict_and_greedy_queues_start_the_worked_example_alike() {
    for queue in ["strict", "greedy"] {
        let ran = schedule(queue);
        let starts: Vec<Time> = ran.iter().map(|it| it.started_at).collect();
        assert_eq!(starts, [seconds(6.5), seconds(4.5), seconds(2.5)], "{queue}");
        let completion: f64 = ran.iter().map(|it| it.ended_at.as_secs_f64()).sum();
        assert_eq!(completion, 25.5, "{queue}");
    }
}

#[test]
fn the_reason_of_a_start_says_when_the_turn_came_and_how_long_the_job_waited() {
    let ran = schedule("greedy");
    assert_eq!(ran[0].why, "its virtual turn came 6.5 s after it could first run");
    assert_eq!(
        ran[1].why,
        "its virtual turn came 2.5 s after it could first run, then it waited 1.0 s for resources"
    );
}
