//! Nodes that are reserved, for maintenance or for some users.

use cohabit_types::{
    DrainRequest, JobId, JobSpec, JobState, MOST_RESERVATIONS, NodeReservation, NodeState, Outcome,
    Principal, Refusal, RefusalCode, Reply, Request, ReservationAccess, ReservationRequest, Role,
    ShareProject, ShareTable, Signal, Span, StopReason, Submit,
};

use super::kit::{TestHead, ada, gpus, root};

const HOUR: Span = Span::from_secs(3_600);

fn minutes(count: u64) -> Span {
    Span::from_secs(60 * count)
}

/// Maintenance of node1 that begins after `ahead` and lasts for `length`.
fn maintenance(test: &TestHead, ahead: Span, length: Span) -> ReservationRequest {
    ReservationRequest {
        nodes: vec!["node1".into()],
        from: Some(test.now + ahead),
        length: Some(length),
        reason: Some("new disks".into()),
        ..ReservationRequest::default()
    }
}

fn reserve(test: &mut TestHead, request: ReservationRequest) -> NodeReservation {
    match test.request(root(), Request::Reserve(Box::new(request))) {
        Reply::Reservation(reservation) => *reservation,
        other => panic!("{other:?}"),
    }
}

fn refused(test: &mut TestHead, by: Principal, request: ReservationRequest) -> Refusal {
    let before = test.head.clone();
    let Reply::Refused(refusal) = test.request(by, Request::Reserve(Box::new(request))) else {
        panic!("it is accepted")
    };
    assert!(test.head == before, "nothing changes");
    refusal
}

fn limited_to(limit: Span) -> JobSpec {
    JobSpec { time_limit: Some(limit), ..gpus(1) }
}

fn preemptible() -> JobSpec {
    JobSpec { preemptible: true, ..gpus(1) }
}

fn submit_as(test: &mut TestHead, user: &str, spec: JobSpec) -> JobId {
    let submit = Submit { spec, idempotency_key: None, estimate: None };
    let reply = test.request(Principal::new(user, Role::User), Request::Submit(Box::new(submit)));
    let Reply::Accepted { job, .. } = reply else { panic!("{reply:?}") };
    job
}

/// The one rank of the job on node1 ends after it was told to stop.
fn leaves(test: &mut TestHead, job: JobId, attempt: u32) {
    let rank = job.attempt(attempt).rank(0);
    test.ended(rank, Outcome::Signalled(Signal::TERM), Some(StopReason::Requeued));
}

fn states<const N: usize>(test: &TestHead, jobs: [JobId; N]) -> [JobState; N] {
    jobs.map(|job| test.state(job))
}

#[test]
fn a_job_that_would_run_into_maintenance_waits_and_a_shorter_one_starts() {
    let mut test = TestHead::with_devices(4);
    let request = maintenance(&test, HOUR * 3, HOUR * 4);
    reserve(&mut test, request);
    let long = test.submit(limited_to(HOUR * 24));
    let without_limit = test.submit(gpus(1));
    let short = test.submit(limited_to(HOUR * 2));
    let given_back = test.submit(preemptible());
    let expected = [JobState::Pending, JobState::Pending, JobState::Running, JobState::Running];
    assert_eq!(states(&test, [long, without_limit, short, given_back]), expected);
    let told = test.reader().explain(long).unwrap().sentences.join("\n");
    assert!(
        told.contains("Could still run when a reservation begins: node1 is reserved in 3 h 0 min"),
        "{told}"
    );
    assert!(
        told.contains(
            "Reservation 1 (maintenance: new disks) keeps it off node1: it begins in 3 h 0 min, and ends in"
        ),
        "{told}"
    );
}

#[test]
fn a_waiting_job_that_leaves_in_time_is_not_told_of_a_reservation() {
    let mut test = TestHead::with_devices(1);
    let request = maintenance(&test, HOUR * 3, HOUR * 4);
    reserve(&mut test, request);
    let (running, waiting) = (test.submit(limited_to(HOUR)), test.submit(limited_to(HOUR)));
    assert_eq!(states(&test, [running, waiting]), [JobState::Running, JobState::Pending]);
    let told = test.reader().explain(waiting).unwrap().sentences.join("\n");
    assert!(!told.contains("Reservation"), "{told}");
}

#[test]
fn the_stop_sequence_of_what_runs_there_ends_when_maintenance_begins() {
    let mut test = TestHead::with_devices(2);
    let job = test.submit(preemptible());
    let request = maintenance(&test, HOUR, HOUR);
    let reservation = reserve(&mut test, request);
    let grace = JobSpec::clone(&preemptible()).stop.grace;
    let left = reservation.from.since(test.now);
    test.after(Span::from_micros(left.as_micros() - grace.as_micros() - 1));
    assert_eq!(test.state(job), JobState::Running);
    test.after(Span::from_micros(1));
    assert_eq!(test.state(job), JobState::Completing);
    leaves(&mut test, job, 1);
    assert_eq!(test.state(job), JobState::Pending, "it does not start there again for less than 15 min");
    test.after(grace);
    let record = test.head.node_records().remove(0);
    assert_eq!((record.state, record.drain.unwrap().reservation), (NodeState::Drained, Some(1)));
    test.after(HOUR);
    assert_eq!((test.state(job), test.head.node_records()[0].state), (JobState::Running, NodeState::Up));
    assert_eq!(test.head.reservations().count(), 0);
    assert_eq!(test.record(job).attempts.len(), 2, "no retry is used, although it may not be retried");
}

#[test]
fn a_job_that_may_run_into_a_reservation_has_to_be_named_by_stop_jobs() {
    let mut test = TestHead::with_devices(2);
    let job = test.submit(gpus(1));
    let ends_before = test.submit(limited_to(minutes(30)));
    let request = maintenance(&test, HOUR, HOUR);
    let refusal = refused(&mut test, root(), request.clone());
    assert_eq!(refusal.code, RefusalCode::WrongState);
    let expected = "1 job may still run there when the reservation begins (1): --stop-jobs stops them then and \
                    queues them again";
    assert_eq!(refusal.message, expected);
    reserve(&mut test, ReservationRequest { stop_jobs: true, ..request });
    test.after(minutes(30));
    test.ended(ends_before.attempt(1).rank(0), Outcome::Exited(0), None);
    test.after(minutes(30));
    assert_eq!(states(&test, [job, ends_before]), [JobState::Completing, JobState::Completed]);
}

#[test]
fn reserved_nodes_run_the_jobs_of_their_users_alone() {
    let mut test = TestHead::with_devices(4);
    let vision = ShareProject { users: ["cyd".to_owned()].into(), ..ShareProject::default() };
    let table = ShareTable { projects: [("vision".to_owned(), vision)].into(), ..ShareTable::default() };
    assert_eq!(test.request(root(), Request::ApplyShares(Box::new(table))), Reply::SharesApplied);
    let admits =
        ReservationAccess { users: ["ben".to_owned()].into(), projects: ["vision".to_owned()].into() };
    let request = ReservationRequest { admits, ..maintenance(&test, HOUR, HOUR) };
    reserve(&mut test, request);
    let early = submit_as(&mut test, "ben", gpus(1));
    let of_ada = submit_as(&mut test, "ada", gpus(1));
    assert_eq!(states(&test, [early, of_ada]), [JobState::Running, JobState::Pending]);
    test.after(HOUR);
    let of_cyd = submit_as(&mut test, "cyd", gpus(1));
    assert_eq!(
        states(&test, [early, of_ada, of_cyd]),
        [JobState::Running, JobState::Pending, JobState::Running]
    );
    let reason = test.record(of_ada).reason;
    assert_eq!(
        reason,
        "needs a node that is not reserved for others; node1 is (cohabit reserve list). First in the queue"
    );
    test.after(HOUR);
    assert_eq!(states(&test, [early, of_ada, of_cyd]), [JobState::Running; 3]);
}

#[test]
fn a_drain_by_a_time_is_a_drain_from_then_on_and_resuming_the_node_undoes_it() {
    let mut test = TestHead::with_devices(2);
    let job = test.submit(gpus(1));
    let by_time = |test: &TestHead| ReservationRequest {
        length: None,
        stop_jobs: true,
        ..maintenance(test, HOUR, HOUR)
    };
    let request = by_time(&test);
    reserve(&mut test, request);
    test.request(root(), Request::Resume("node1".into()));
    assert_eq!(test.head.reservations().count(), 0, "it is not drained any more");
    test.after(HOUR * 2);
    assert_eq!(test.state(job), JobState::Running);
    let request = by_time(&test);
    reserve(&mut test, request);
    test.after(HOUR);
    let drain = test.head.node_records()[0].drain.clone().unwrap();
    assert_eq!((drain.by.as_str(), drain.reservation), ("root", None));
    assert_eq!((test.state(job), test.head.reservations().count()), (JobState::Completing, 0));
    leaves(&mut test, job, 1);
    test.request(root(), Request::Resume("node1".into()));
    assert_eq!(test.state(job), JobState::Running);
}

#[test]
fn maintenance_leaves_drained_what_somebody_drained_and_open_what_somebody_resumed() {
    let mut test = TestHead::with_devices(1);
    test.join(2, 1);
    test.request(root(), Request::Drain(DrainRequest::new("node1")));
    let nodes = vec!["node1".into(), "node2".into()];
    let request = ReservationRequest { nodes, ..maintenance(&test, HOUR, HOUR) };
    reserve(&mut test, request);
    test.after(HOUR);
    test.request(root(), Request::Resume("node2".into()));
    let job = test.submit(gpus(1));
    assert_eq!(test.state(job), JobState::Running, "on node2");
    test.after(minutes(30));
    assert_eq!(test.state(job), JobState::Running, "nor is it stopped there");
    test.after(HOUR);
    let states: Vec<NodeState> = test.head.node_records().iter().map(|it| it.state).collect();
    assert_eq!(states, [NodeState::Drained, NodeState::Up]);
}

#[test]
fn a_node_that_joins_during_its_maintenance_is_drained() {
    let mut test = TestHead::with_devices(1);
    let request = maintenance(&test, HOUR, Span::from_secs(86_400 * 30));
    reserve(&mut test, request);
    test.after(HOUR);
    test.lose(1, 1);
    // Long enough for the node to be forgotten.
    test.after(HOUR * 24);
    test.rejoin(1, 2, vec![]);
    assert_eq!(test.head.node_records()[0].state, NodeState::Drained);
}

#[test]
fn a_cancelled_reservation_is_over_at_once_and_its_number_is_not_used_again() {
    let mut test = TestHead::with_devices(1);
    let request = maintenance(&test, HOUR, HOUR * 9);
    reserve(&mut test, request.clone());
    let again = reserve(&mut test, request.clone());
    assert_eq!((again.number, test.head.reservations().count()), (1, 1), "a repeated request");
    test.after(HOUR);
    let job = test.submit(gpus(1));
    assert_eq!(test.state(job), JobState::Pending);
    let Reply::Reservation(cancelled) = test.request(root(), Request::CancelReservation(1)) else { panic!() };
    assert_eq!((cancelled.number, test.state(job)), (1, JobState::Running));
    let Reply::Refused(refusal) = test.request(root(), Request::CancelReservation(1)) else { panic!() };
    assert_eq!(refusal.code, RefusalCode::NotFound);
    let request = ReservationRequest { stop_jobs: true, ..maintenance(&test, HOUR, HOUR) };
    assert_eq!(reserve(&mut test, request).number, 2);
}

#[test]
fn a_reservation_that_cannot_be_is_refused_with_the_remedy() {
    let mut test = TestHead::with_devices(1);
    test.after(HOUR);
    let usual = maintenance(&test, HOUR, HOUR);
    let refusal_of = |test: &mut TestHead, change: &dyn Fn(&mut ReservationRequest)| {
        let mut request = usual.clone();
        change(&mut request);
        refused(test, root(), request).message
    };
    let past = test.now - minutes(5);
    let told = [
        refusal_of(&mut test, &|it| it.nodes = vec!["gpu9".into()]),
        refusal_of(&mut test, &|it| it.nodes.clear()),
        refusal_of(&mut test, &|it| it.from = Some(past)),
        refusal_of(&mut test, &|it| it.length = Some(Span::from_secs(59))),
        refusal_of(&mut test, &|it| it.admits.projects = ["vision".to_owned()].into()),
    ];
    assert_eq!(
        told,
        [
            "there is no node 'gpu9': the nodes are node1",
            "the reservation names no node: name them with --nodes a,b",
            "the reservation would begin 5 min 0 s ago: leave --from out to begin now",
            "a reservation begins within a year, and lasts from a minute to a year; without --for it lasts until it is cancelled",
            "there is no project 'vision': there are none (cohabit share)",
        ]
    );
    let by_user = refused(&mut test, ada(), usual.clone());
    assert_eq!(by_user.code, RefusalCode::NotAllowed);
    reserve(&mut test, usual.clone());
    let overlapping = ReservationRequest { length: None, ..usual };
    let refusal = refused(&mut test, root(), overlapping);
    assert_eq!(
        refusal.message,
        "node node1 is reserved at that time already, by reservation 1 of root: cancel that one (cohabit reserve \
         cancel 1), or choose another time"
    );
}

#[test]
fn no_more_reservations_are_kept_than_a_demand_can_name() {
    let mut test = TestHead::with_devices(1);
    for number in 0..MOST_RESERVATIONS as u64 {
        let request = maintenance(&test, HOUR * (2 * number + 1), HOUR);
        reserve(&mut test, request);
    }
    let request = maintenance(&test, HOUR * 1_000, HOUR);
    let refusal = refused(&mut test, root(), request);
    assert_eq!(refusal.code, RefusalCode::Limit);
}
