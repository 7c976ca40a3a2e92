//! What users and projects may have at most, and the project that a job names.

use std::collections::BTreeSet;

use cohabit_types::{
    ClientRequestId, JobChange, JobId, JobSpec, JobState, Outcome, Principal, ReasonCode, RefusalCode, Reply,
    Request, Role, RunningLimits, ShareProject, ShareTable, Span, Submit, UserLimits,
};

use super::kit::{TestHead, ada, array, gpus, rank, root};
use crate::Event;

fn bob() -> Principal {
    Principal::new("bob", Role::User)
}

fn submission(spec: JobSpec) -> Submit {
    Submit { spec, idempotency_key: None, estimate: None }
}

fn submit_as(test: &mut TestHead, by: Principal, spec: JobSpec) -> JobId {
    let reply = test.request(by, Request::Submit(Box::new(submission(spec))));
    let Reply::Accepted { job, .. } = reply else { panic!("{reply:?}") };
    job
}

fn project(users: &[&str], running: RunningLimits) -> ShareProject {
    let users = users.iter().map(|it| (*it).to_owned()).collect::<BTreeSet<_>>();
    ShareProject { users, running, ..ShareProject::default() }
}

fn table<const N: usize>(projects: [(&str, ShareProject); N]) -> ShareTable {
    let projects = projects.into_iter().map(|(name, project)| (name.to_owned(), project)).collect();
    ShareTable { projects, ..ShareTable::default() }
}

fn apply(test: &mut TestHead, table: ShareTable) {
    assert_eq!(test.request(root(), Request::ApplyShares(Box::new(table))), Reply::SharesApplied);
}

fn limited(gpus: Option<u64>, jobs: Option<u64>) -> RunningLimits {
    RunningLimits { gpus, jobs }
}

#[test]
fn a_user_holds_no_more_than_the_table_allows_until_another_table_is_applied() {
    let mut test = TestHead::with_devices(8);
    let user = UserLimits { running: limited(Some(4_000), None), ..UserLimits::default() };
    apply(&mut test, ShareTable { user, ..ShareTable::default() });
    let jobs = [(); 6].map(|()| test.submit(gpus(1)));
    let running = |test: &TestHead| jobs.iter().filter(|it| test.state(**it) == JobState::Running).count();
    assert_eq!(running(&test), 4);
    let record = test.record(jobs[4]);
    let expected = (ReasonCode::WaitingForUserLimit, "its user holds 4 GPUs, as many as running-gpus allows");
    assert_eq!((record.reason_code, record.reason.as_str()), expected);
    let reply = test.request(ada(), Request::Submit(Box::new(submission(gpus(5)))));
    let Reply::Refused(refusal) = reply else { panic!("{reply:?}") };
    assert_eq!(refusal.code, RefusalCode::Limit);
    assert!(refusal.message.contains("needs 5 GPUs, and ada may hold 4"), "{}", refusal.message);
    apply(&mut test, ShareTable::default());
    assert_eq!(running(&test), 6);
    test.head.check().unwrap();
}

#[test]
fn the_users_of_a_project_share_its_limit() {
    let mut test = TestHead::with_devices(8);
    let vision = project(&["ada", "bob"], limited(Some(3_000), None));
    apply(&mut test, table([("vision", vision)]));
    let first = test.submit(gpus(2));
    let second = submit_as(&mut test, bob(), gpus(2));
    assert_eq!((test.state(first), test.state(second)), (JobState::Running, JobState::Pending));
    let reason = test.record(second).reason;
    assert_eq!(
        reason,
        "project vision holds 2 GPUs, and those of its user ahead of it reach running-gpus (3)",
    );
    test.ended(rank(1, 1), Outcome::Exited(0), None);
    assert_eq!(test.state(second), JobState::Running);
}

#[test]
fn a_job_names_no_project_but_its_own() {
    let mut test = TestHead::with_devices(2);
    let of = |user: &str| project(&[user], RunningLimits::default());
    apply(&mut test, table([("vision", of("bob")), ("speech", of("ada"))]));
    let mut refused = |name: &str| {
        let spec = JobSpec { project: Some(name.to_owned()), ..gpus(1) };
        match test.request(ada(), Request::Submit(Box::new(submission(spec)))) {
            Reply::Refused(refusal) => refusal.message,
            _ => String::new(),
        }
    };
    assert_eq!(refused("speech"), "");
    assert!(refused("vision").contains("is in project speech: say --project speech"));
    assert!(refused("visoin").contains("there is no such project"));
}

/// That a job of this user has this state, and why it waits.
fn waits(test: &TestHead, job: JobId) -> Option<String> {
    (test.state(job) == JobState::Pending).then(|| test.reader().sentences(job).unwrap().join(" "))
}

#[test]
fn what_is_guaranteed_to_others_is_lent_only_to_jobs_that_can_be_given_back() {
    let mut test = TestHead::with_devices(8);
    let vision = ShareProject { guaranteed: 4_000, ..project(&["bob"], RunningLimits::default()) };
    apply(&mut test, ShareTable { open_part: 250, ..table([("vision", vision)]) });
    // Two of 8 are left besides the 4 that are guaranteed and the open quarter.
    let fixed: Vec<JobId> = (0..3).map(|_| test.submit(gpus(1))).collect();
    test.runs();
    assert!(waits(&test, fixed[0]).is_none() && waits(&test, fixed[1]).is_none());
    let why = waits(&test, fixed[2]).unwrap();
    assert!(
        why.contains("6 GPUs are kept for jobs that can be given back: --preemptible or --time 8h"),
        "{why}"
    );
    let limit = Some(Span::from_secs(8 * 3_600));
    let short = test.submit(JobSpec { time_limit: limit, ..gpus(1) });
    let preemptible = test.submit(JobSpec { preemptible: true, ..gpus(4) });
    test.runs();
    assert!(waits(&test, short).is_none() && waits(&test, preemptible).is_none());
    // Bob takes what is guaranteed to him: of the one that is left here.
    let own = submit_as(&mut test, bob(), gpus(1));
    test.runs();
    assert!(waits(&test, own).is_none());
    test.head.check().unwrap();
    // Without the table there is nothing to keep.
    test.change(JobChange::Cancel, preemptible);
    test.ended(rank(5, 1), Outcome::Exited(0), None);
    apply(&mut test, ShareTable::default());
    test.runs();
    assert!(waits(&test, fixed[2]).is_none());
}

#[test]
fn parts_and_limits_that_make_no_sense_are_refused() {
    let mut test = TestHead::with_devices(2);
    let user = |running, queued_jobs| UserLimits { running, queued_jobs, ..UserLimits::default() };
    let plain = RunningLimits::default();
    let of_user = |user| ShareTable { user, ..ShareTable::default() };
    let tables = [
        (ShareTable { open_part: 1_001, ..ShareTable::default() }, "open-part is 1.001"),
        (ShareTable { keep_for: Span::from_secs(31 * 86_400), ..ShareTable::default() }, "keep-for is 31"),
        (of_user(user(limited(Some(0), None), None)), "running-gpus of each user is 0"),
        (table([("a", project(&[], limited(None, Some(0))))]), "running-jobs of project a is 0"),
        (of_user(user(plain, Some(0))), "queued-jobs of each user is 0"),
    ];
    for (table, expected) in tables {
        let reply = test.request(root(), Request::ApplyShares(Box::new(table)));
        let Reply::Refused(refusal) = reply else { panic!("{expected}: {reply:?}") };
        assert!(refusal.message.contains(expected), "{}", refusal.message);
    }
}

/// A policy must forget members that end while a table is applied: it was shown them under the one before.
#[test]
fn a_policy_hears_of_members_that_end_in_the_moment_of_another_table() {
    let mut test = TestHead::with_devices(1);
    let members = test.submit(array(0, 3, None));
    let (mut tracker, mut view) = (test.tracker.clone(), test.head.view(test.now));
    assert_eq!(view.pending.len(), 1, "of so many members as could start");
    let user = UserLimits { running: limited(Some(4_000), None), ..UserLimits::default() };
    let table = ShareTable { user, ..ShareTable::default() };
    let changes = [
        (root(), Request::ApplyShares(Box::new(table))),
        (ada(), Request::Change(JobChange::Cancel, vec![members])),
    ];
    for (by, request) in changes {
        let event = Event::Client(ClientRequestId(9), by, request);
        tracker.note(test.head.handle(test.now, event, &mut Vec::new()));
    }
    view.apply(&tracker.changes(&test.head, test.now));
    assert_eq!(view.pending, test.head.view(test.now).pending);
}
