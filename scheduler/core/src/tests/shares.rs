//! Fair share: what users hold and used, whose turn it is, and the table that an admin applies.

use std::collections::BTreeSet;

use cohabit_types::{
    Bytes, Demand, GpuRequest, JobSpec, Outcome, Principal, RefusalCode, Reply, Request, Role, Share,
    ShareProject, ShareReport, ShareTable, Span, Submit,
};

use super::kit::{TestHead, ada, command, gpus, rank, root};
use crate::{Config, Event, Head};

fn ben() -> Principal {
    Principal::new("ben", Role::User)
}

fn submit_as(test: &mut TestHead, by: Principal, spec: JobSpec) {
    test.request(by, Request::Submit(Box::new(Submit { spec, idempotency_key: None, estimate: None })));
}

fn report(test: &TestHead) -> ShareReport {
    test.head.share_report(test.now)
}

/// Projects in their order, with what they hold, are entitled to and wait for, in GPUs.
fn shares(test: &TestHead) -> Vec<(String, [f64; 3])> {
    let gpus = |milli: u64| milli as f64 / 1_000.0;
    let share = |it: &cohabit_types::PartyShare| [it.held, it.entitled, it.waiting].map(gpus);
    report(test).projects.iter().map(|it| (it.name.clone(), share(&it.share))).collect()
}

fn project(weight: u32, guaranteed: u64, users: &[&str]) -> ShareProject {
    ShareProject {
        weight,
        guaranteed,
        users: users.iter().map(|it| (*it).to_owned()).collect::<BTreeSet<_>>(),
        ..ShareProject::default()
    }
}

fn table(projects: &[(&str, ShareProject)]) -> ShareTable {
    let projects = projects.iter().map(|(name, project)| ((*name).to_owned(), project.clone())).collect();
    ShareTable { projects, ..ShareTable::default() }
}

fn apply(test: &mut TestHead, table: ShareTable) -> Reply {
    test.request(root(), Request::ApplyShares(Box::new(table)))
}

#[test]
fn the_job_of_another_user_starts_next_and_explain_says_why() {
    let mut test = TestHead::with_devices(2);
    let flood: Vec<_> = (0..6).map(|_| test.submit(gpus(1))).collect();
    submit_as(&mut test, ben(), gpus(1));
    assert_eq!(shares(&test), [("ben".into(), [0.0, 1.0, 1.0]), ("ada".into(), [2.0, 1.0, 4.0])]);
    let text = test.reader().sentences(flood[5]).unwrap().join(" ");
    let sentence = "User ada holds 2 GPUs, and the part due to them now is 1 GPU: weight 1 of 2";
    assert!(text.contains(sentence) && text.contains("User ben comes first: 0 of 1 held."), "{text}");
    test.runs();
    test.ended(rank(1, 1), Outcome::Exited(0), None);
    assert_eq!(test.runs()[0].attempt.job.number, 7, "the job of ben");
}

#[test]
fn without_fair_share_the_policy_orders_the_jobs_of_all() {
    let mut test = TestHead::with_devices(1);
    test.event(Event::HeadStarted(Config { fair_share: false, ..Config::default() }));
    let jobs: Vec<_> = (0..3).map(|_| test.submit(gpus(1))).collect();
    submit_as(&mut test, ben(), gpus(1));
    assert!(!report(&test).is_on);
    assert!(!test.reader().sentences(jobs[2]).unwrap().join(" ").contains("User ada holds"));
}

#[test]
fn what_is_used_is_time_times_what_is_held() {
    let mut test = TestHead::with_devices(2);
    let gpu_memory = Some(Bytes(40 << 30));
    let demand = Demand { gpus: GpuRequest::Part(Share(300)), gpu_memory, ..Demand::default() };
    test.submit(JobSpec { demand, ..command() });
    test.runs();
    test.after(Span::from_secs(30));
    assert_eq!(shares(&test)[0].1[0], 0.5, "40 of 80 GB are half a GPU");
    test.ended(rank(1, 1), Outcome::Exited(0), None);
    let used = test.head.at(test.now).head.shares.used()["ada"];
    assert_eq!((used.held, used.used), (0, 500 * 30_000_000));
}

#[test]
fn a_table_is_applied_as_a_whole_and_survives_a_snapshot() {
    let mut test = TestHead::with_devices(4);
    for by in [ada(), ben(), Principal::new("cyd", Role::User)] {
        for _ in 0..5 {
            submit_as(&mut test, by.clone(), gpus(1));
        }
    }
    let vision = table(&[("vision", project(2_000, 2_000, &["ada", "ben"]))]);
    assert_eq!(apply(&mut test, vision.clone()), Reply::SharesApplied);
    let entitled = |test: &TestHead| {
        let mut all: Vec<_> =
            report(test).projects.iter().map(|it| (it.name.clone(), it.share.entitled)).collect();
        all.sort();
        all
    };
    // Cyd's weight is a third, and what was used so far is nothing.
    let expected = entitled(&test);
    assert_eq!(expected.iter().map(|it| it.0.as_str()).collect::<Vec<_>>(), ["cyd", "vision"]);
    assert!(expected[1].1 >= 2_000 + 1_333 && expected[0].1 + expected[1].1 <= 4_000, "{expected:?}");
    let (rest, parts) = test.head.split_for_snapshot(10);
    let restored = Head::from_snapshot(rest, parts.collect()).unwrap();
    assert_eq!(restored, test.head);
    restored.check().unwrap();
    assert_eq!(restored.share_report(test.now), report(&test));
}

#[test]
fn a_table_that_makes_no_sense_changes_nothing() {
    let mut test = TestHead::with_devices(4);
    let before = test.head.clone();
    let refused = |test: &mut TestHead, table: ShareTable| match apply(test, table) {
        Reply::Refused(refusal) => (refusal.code, refusal.message),
        other => panic!("{other:?}"),
    };
    let wrong = [
        (ShareTable { half_life: Span::ZERO, ..ShareTable::default() }, "half-life is 0"),
        (table(&[("a", project(0, 0, &["ada"]))]), "the weight of project a is 0"),
        (
            table(&[("a", project(1, 0, &["ada"])), ("b", project(1, 0, &["ada"]))]),
            "user ada is in the projects a and b",
        ),
        (
            table(&[("a", project(1, 5_000, &["ada"]))]),
            "5 GPUs are guaranteed, and the nodes that take jobs have 4",
        ),
        (table(&[("a", project(1, u64::MAX, &[])), ("b", project(1, 5, &[]))]), "18446744073709551.6 GPUs"),
        (table(&[("a\nb", project(0, 0, &[]))]), "'a\\nb' is no name"),
        (
            ShareTable { prices: [("V100".into(), 0)].into(), ..ShareTable::default() },
            "the price of V100 is 0",
        ),
    ];
    for (table, why) in wrong {
        let (code, message) = refused(&mut test, table);
        assert!(code == RefusalCode::Invalid && message.starts_with(why), "{message}");
    }
    let by_user = test.request(ada(), Request::ApplyShares(Box::default()));
    assert!(matches!(by_user, Reply::Refused(refusal) if refusal.code == RefusalCode::NotAllowed));
    assert_eq!(test.head.shares, before.shares);
    assert_eq!(apply(&mut test, ShareTable::default()), Reply::SharesApplied, "it is so already");
}
