//! The cores and the host memory of running jobs change, and nothing is given before it is free.

use cohabit_policy::{Action, Plan};
use cohabit_types::{
    Bytes, Demand, Enforcement, GpuRequest, HostShare, Inventory, Isolation, JobEventKind, JobId, JobSpec,
    JobState, Order, Outcome, PlanRequestId, Report,
};

use super::kit::*;
use crate::Event;

const fn cores(cpus: u32) -> HostShare {
    HostShare { cpus, memory: Bytes::ZERO }
}

/// A job without devices that takes these cores at least and at most.
fn range(least: u32, most: u32) -> JobSpec {
    let demand =
        Demand { gpus: GpuRequest::Whole(0), cpus: least, up_to: Some(cores(most)), ..Demand::default() };
    JobSpec { demand, ..command() }
}

/// The open request for a plan; a node that joins leads to one where there is none.
fn ticket(test: &mut TestHead) -> PlanRequestId {
    match test.head.open_plan_request {
        Some(ticket) => ticket,
        None => {
            test.event(Event::InterferenceUpdated);
            test.head.open_plan_request.expect("running jobs may be given more")
        }
    }
}

fn allot(test: &mut TestHead, actions: &[(JobId, u32)]) {
    let ticket = ticket(test);
    let action =
        |(job, cpus): &(JobId, u32)| Action::Allot { job: *job, host: cores(*cpus), why: "test".into() };
    test.event(Event::Planned(ticket, Plan { actions: actions.iter().map(action).collect(), wake: None }));
}

fn answer(test: &mut TestHead, job: JobId, cpus: u32) {
    let attempt = job.attempt(1);
    test.event(Event::Report(key(1, 1), Report::Allotted { attempt, host: cores(cpus) }));
}

fn order(job: JobId, cpus: u32) -> Order {
    Order::Allot { attempt: job.attempt(1), host: cores(cpus) }
}

/// What the jobs hold on the node, together.
fn held(test: &TestHead) -> u32 {
    test.head.node_records()[0].cpus_used
}

fn holds(test: &TestHead, job: JobId) -> Vec<HostShare> {
    test.record(job).attempts[0].host.clone()
}

fn dropped(test: &TestHead, job: JobId) -> Vec<String> {
    let why = |kind| if let JobEventKind::PlanDropped(why) = kind { Some(why) } else { None };
    test.head.job_history(job).into_iter().filter_map(|event| why(event.kind)).collect()
}

/// A head with a node of eight cores on which these jobs run, each with its least.
fn running(jobs: &[JobSpec]) -> (TestHead, Vec<JobId>) {
    let mut test = TestHead::with_devices(1);
    let ids: Vec<JobId> = jobs.iter().map(|spec| test.submit(spec.clone())).collect();
    ids.iter().for_each(|id| test.started(id.attempt(1).rank(0)));
    test.planned();
    test.effects();
    (test, ids)
}

#[test]
fn a_worker_is_told_what_a_job_holds_at_its_start() {
    let mut test = TestHead::with_devices(1);
    let spec =
        JobSpec { demand: Demand { cpus: 2, up_to: Some(cores(6)), ..Demand::default() }, ..command() };
    let job = test.submit(spec);
    let run = test.runs().remove(0);
    assert_eq!(run.spec.demand.cpus, 6, "the whole node is in proportion to its one device");
    assert_eq!((holds(&test, job), held(&test)), (vec![cores(6)], 6));
}

#[test]
fn more_is_given_at_once_and_less_is_free_when_the_worker_has_taken_it() {
    let (mut test, jobs) = running(&[range(2, 8)]);
    allot(&mut test, &[(jobs[0], 6)]);
    assert_eq!((test.orders(), held(&test)), (vec![(key(1, 1), order(jobs[0], 6))], 6));
    answer(&mut test, jobs[0], 6);
    test.planned();
    allot(&mut test, &[(jobs[0], 3)]);
    assert_eq!((test.orders(), held(&test)), (vec![(key(1, 1), order(jobs[0], 3))], 6));
    answer(&mut test, jobs[0], 3);
    assert_eq!((holds(&test, jobs[0]), held(&test)), (vec![cores(3)], 3));
    let history = test.head.job_history(jobs[0]);
    let last = history.last().unwrap().kind.to_string();
    assert_eq!(last, "attempt 1 has 3 cores instead of 6 cores (test)");
}

#[test]
fn what_a_shrinking_job_still_holds_is_given_to_nobody() {
    let (mut test, jobs) = running(&[range(2, 6), range(2, 6)]);
    allot(&mut test, &[(jobs[0], 6)]);
    answer(&mut test, jobs[0], 6);
    test.planned();
    allot(&mut test, &[(jobs[0], 2), (jobs[1], 6)]);
    assert_eq!(dropped(&test, jobs[1]).len(), 1, "the first job may still use all of it");
    assert_eq!(held(&test), 8);
    answer(&mut test, jobs[0], 2);
    test.planned();
    allot(&mut test, &[(jobs[1], 6)]);
    assert_eq!(held(&test), 8);
}

#[test]
fn what_is_free_again_leads_to_a_plan_even_if_no_job_waits() {
    let (mut test, jobs) = running(&[range(2, 6), range(2, 6)]);
    test.ended(jobs[0].attempt(1).rank(0), Outcome::Exited(0), None);
    allot(&mut test, &[(jobs[1], 6)]);
    assert_eq!(held(&test), 6);
    answer(&mut test, jobs[1], 6);
    assert!(test.head.open_plan_request.is_some(), "others may use what the kernel has let go");
}

#[test]
fn an_order_is_repeated_over_a_new_link_until_it_is_answered() {
    let (mut test, jobs) = running(&[range(2, 8)]);
    allot(&mut test, &[(jobs[0], 6)]);
    test.lose(1, 1);
    test.effects();
    let phase = cohabit_types::HeldRankPhase::Running(test.now);
    let held_rank = cohabit_types::HeldRank { rank: jobs[0].attempt(1).rank(0), phase };
    test.rejoin(1, 2, vec![held_rank]);
    assert_eq!(test.orders(), [(key(1, 2), order(jobs[0], 6))]);
    answer(&mut test, jobs[0], 2);
    assert_eq!(held(&test), 6, "an answer over the old link counts for nothing");
    let attempt = jobs[0].attempt(1);
    test.event(Event::Report(key(1, 2), Report::Allotted { attempt, host: cores(2) }));
    assert_eq!((holds(&test, jobs[0]), held(&test)), (vec![cores(2)], 2), "the kernel refused");
    let last = test.head.job_history(jobs[0]).last().unwrap().kind.to_string();
    assert_eq!(last, "attempt 1 keeps 2 cores: its worker could not change that (test)");
}

#[test]
fn a_worker_that_can_no_longer_change_anything_leaves_jobs_what_they_may_use_at_most() {
    let (mut test, jobs) = running(&[range(2, 8)]);
    allot(&mut test, &[(jobs[0], 6)]);
    test.lose(1, 1);
    let phase = cohabit_types::HeldRankPhase::Running(test.now);
    let held_rank = cohabit_types::HeldRank { rank: jobs[0].attempt(1).rank(0), phase };
    let without = Inventory { changes_host_shares: false, ..inventory(1, 1, vec![held_rank]) };
    test.event(Event::Joined(key(1, 2), without));
    test.planned();
    assert_eq!((holds(&test, jobs[0]), held(&test)), (vec![cores(6)], 6));
    allot(&mut test, &[(jobs[0], 2)]);
    let why = dropped(&test, jobs[0]);
    assert!(why[0].ends_with("but node node1 cannot change that"), "{why:?}");
}

#[test]
fn a_worker_that_says_more_or_less_than_it_was_told_is_not_believed() {
    for (said, believed) in [(200, 6), (0, 2)] {
        let (mut test, jobs) = running(&[range(2, 8)]);
        allot(&mut test, &[(jobs[0], 6)]);
        answer(&mut test, jobs[0], said);
        assert_eq!(held(&test), believed, "it said {said}");
        answer(&mut test, jobs[0], 7);
        assert_eq!(held(&test), believed, "and nobody had asked");
    }
}

#[test]
fn a_change_that_is_not_possible_is_dropped_and_the_history_says_why() {
    let (mut test, jobs) =
        running(&[range(2, 6), JobSpec { demand: Demand { cpus: 1, ..Demand::default() }, ..gpus(0) }]);
    for (job, cpus, why) in [
        (jobs[0], 7, "it takes 2 cores to 6 cores"),
        (jobs[0], 1, "it takes 2 cores to 6 cores"),
        (jobs[1], 2, "but what it claims is fixed"),
    ] {
        allot(&mut test, &[(job, cpus)]);
        test.planned();
        assert!(dropped(&test, job).last().unwrap().ends_with(why), "{:?}", dropped(&test, job));
    }
    assert_eq!(test.orders(), []);
    let waiting = test.submit(JobSpec { held: true, ..range(1, 2) });
    allot(&mut test, &[(waiting, 2), (job(77), 2), (jobs[0], 2)]);
    assert!(dropped(&test, waiting)[0].ends_with("but it does not run"));
    assert_eq!(test.orders(), [], "it has that already");
}

#[test]
fn the_end_of_a_job_frees_what_it_held_in_the_middle_of_a_change() {
    let (mut test, jobs) = running(&[range(2, 8)]);
    allot(&mut test, &[(jobs[0], 8)]);
    test.ended(jobs[0].attempt(1).rank(0), Outcome::Exited(0), None);
    assert_eq!((test.state(jobs[0]), held(&test)), (JobState::Completed, 0));
    answer(&mut test, jobs[0], 8);
    assert_eq!(held(&test), 0);
}

fn explanation(test: &TestHead, job: JobId) -> String {
    test.reader().sentences(job).unwrap().join(" ")
}

#[test]
fn an_explanation_says_what_a_job_with_a_range_holds() {
    let (mut test, jobs) = running(&[range(2, 8)]);
    let holds = "It holds 2 cores on node node1, of 2 cores to 8 cores.";
    assert!(explanation(&test, jobs[0]).contains(holds), "{}", explanation(&test, jobs[0]));
    allot(&mut test, &[(jobs[0], 6)]);
    answer(&mut test, jobs[0], 6);
    test.planned();
    allot(&mut test, &[(jobs[0], 3)]);
    let holds =
        "It holds 6 cores on node node1, of 2 cores to 8 cores; its worker was told to make that 3 cores.";
    assert!(explanation(&test, jobs[0]).contains(holds), "{}", explanation(&test, jobs[0]));
    let fixed = test.submit(JobSpec { demand: Demand { cpus: 1, ..Demand::default() }, ..gpus(0) });
    assert!(!explanation(&test, fixed).contains("It holds"), "it gives no range");
    test.ended(jobs[0].attempt(1).rank(0), Outcome::Exited(0), None);
    assert!(!explanation(&test, jobs[0]).contains("It holds"), "it has ended");
}

#[test]
fn an_explanation_says_why_what_a_job_holds_is_fixed() {
    let unenforced = Enforcement::Unenforced("no delegated cgroup".into());
    for (host_limits, why) in [
        (unenforced, "limits are not enforced on that node: no delegated cgroup."),
        (Enforcement::Enforced, "the worker there (version 0.1.0-test) cannot change limits: upgrade it."),
    ] {
        let mut test = TestHead::new();
        let isolation = Isolation { host_limits, ..Isolation::default() };
        let usual = inventory(1, 1, vec![]);
        let build = "0.1.0-test".to_owned();
        let inventory = Inventory { isolation, build, changes_host_shares: false, ..usual };
        test.event(Event::Joined(key(1, 1), inventory));
        let job = test.submit(range(2, 8));
        let fixed = format!(
            "It holds 2 cores on node node1, of 2 cores to 8 cores; this is fixed while it runs, because {why}"
        );
        assert!(explanation(&test, job).contains(&fixed), "{}", explanation(&test, job));
    }
    let mut test = TestHead::with_devices(1);
    test.join(2, 1);
    let spec = range(2, 8);
    let job = test.submit(JobSpec { demand: Demand { nodes: 2, ..spec.demand }, ..spec });
    test.planned();
    let fixed = "It holds 2 cores on each node, of 2 cores to 8 cores; this is fixed, because it may run on several nodes.";
    assert!(explanation(&test, job).contains(fixed), "{}", explanation(&test, job));
}

#[test]
fn changes_in_a_row_do_not_push_the_rest_of_the_history_out() {
    let (mut test, jobs) = running(&[range(2, 8)]);
    for round in 0..200 {
        let cpus = 2 + (round % 2) * 4;
        allot(&mut test, &[(jobs[0], cpus)]);
        answer(&mut test, jobs[0], cpus);
        test.planned();
    }
    let history = test.head.job_history(jobs[0]);
    assert!(history.len() < 16, "{} events", history.len());
    assert!(history.iter().any(|event| matches!(event.kind, JobEventKind::Placed { .. })));
}
