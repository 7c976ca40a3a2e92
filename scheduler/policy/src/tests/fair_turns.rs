//! Users take turns, whatever the policy: the next device goes to the one who holds the smallest part of what
//! they are entitled to, and among the jobs of one user the policy decides.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_fair_share::RecentUse;
use cohabit_types::{Demand, Estimate, Placement, Qos, RankPlacement, Share, ShareTable, Span, Time};
use proptest::prelude::*;

use super::kit::*;
use crate::{
    Action, JobTraits, POLICY_NAMES, PendingJob, Plan, SharesChange, View, ViewChange, parse_policy,
};

/// These order all jobs by rules of their own.
const OWN_ORDER: [&str; 3] = ["drf", "tetris", "maifs"];

fn policies() -> impl Iterator<Item = &'static str> {
    POLICY_NAMES.into_iter().filter(|name| !OWN_ORDER.contains(name))
}

fn of_user(user: &str, number: u64, demand: Demand) -> PendingJob {
    let traits = JobTraits { user: user.to_owned(), preemptible: false, ..JobTraits::default() };
    PendingJob { traits: Arc::new(traits), ..job(number, demand) }
}

/// A cluster of these devices, where users take turns. The jobs of whoever holds something run already, each
/// on one device from the first on.
fn with_turns(devices: usize, held: &[(&str, usize)], pending: Vec<PendingJob>) -> View {
    let free: Vec<u32> = vec![1_000; devices];
    let mut node = node(1, &free);
    let now = Time::EPOCH + Span::from_secs(1_000_000);
    let mut view = View { now, ..View::default() };
    view.apply(&[ViewChange::Shares(SharesChange::Table(Arc::new(ShareTable::default())))]);
    let mut number = 10_000;
    for (user, count) in held {
        for _ in 0..*count {
            let device = (number - 10_000) as usize;
            node.devices[device].free = Share(0);
            let part = RankPlacement {
                node: node.id,
                devices: vec![node.devices[device].id.clone()],
                share: Share::WHOLE,
                ranks: Vec::new(),
                host: None,
            };
            let running = of_user(user, number, gpus(1)).placed(Placement { parts: vec![part] }, now);
            view.apply(&[ViewChange::Running(running)]);
            number += 1;
        }
        let used = RecentUse { held: 1_000 * *count as u64, used: 0, at: now, ..RecentUse::default() };
        view.apply(&[ViewChange::Shares(SharesChange::Used((*user).to_owned(), used))]);
    }
    view.apply(&[ViewChange::Node(node)]);
    view.apply(&pending.into_iter().map(ViewChange::Pending).collect::<Vec<_>>());
    view
}

fn plan_of(policy: &str, view: &View) -> Plan {
    let mut policy = parse_policy(policy).unwrap();
    policy.learn(view, &view.as_changes());
    policy.plan(view)
}

/// How many jobs of each user start.
fn starts(plan: &Plan, view: &View) -> BTreeMap<String, usize> {
    let mut starts = BTreeMap::new();
    for action in &plan.actions {
        if let Action::Place { job, .. } = action {
            *starts.entry(view.pending[job].traits.user.clone()).or_default() += 1;
        }
    }
    starts
}

fn counted(starts: &[(&str, usize)]) -> BTreeMap<String, usize> {
    starts.iter().map(|(user, count)| ((*user).to_owned(), *count)).collect()
}

#[test]
fn the_job_of_another_user_is_the_next_to_start_whoever_floods_the_queue() {
    let mut jobs: Vec<PendingJob> = (1..=500).map(|number| of_user("ada", number, gpus(1))).collect();
    jobs.push(of_user("ben", 501, gpus(1)));
    let view = with_turns(8, &[("ada", 7)], jobs);
    for policy in policies() {
        let plan = plan_of(policy, &view);
        assert_eq!(starts(&plan, &view), counted(&[("ben", 1)]), "{policy}");
    }
}

/// The same job with this quality of service.
fn with_qos(qos: Qos, job: PendingJob) -> PendingJob {
    let traits = JobTraits { qos, ..JobTraits::clone(&job.traits) };
    PendingJob { traits: Arc::new(traits), ..job }
}

#[test]
fn low_takes_what_nobody_else_wants_and_high_comes_sooner() {
    let jobs = vec![
        with_qos(Qos::Low, of_user("cyd", 1, gpus(1))),
        of_user("ben", 2, gpus(1)),
        with_qos(Qos::High, of_user("ada", 3, gpus(1))),
    ];
    // Ada holds three, which count one and a half for her urgent job; ben holds two.
    for (free, expected) in [(1, vec!["ada"]), (2, vec!["ada", "ben"]), (3, vec!["ada", "ben", "cyd"])] {
        let view = with_turns(5 + free, &[("ada", 3), ("ben", 2)], jobs.clone());
        for policy in policies() {
            let expected: Vec<(&str, usize)> = expected.iter().map(|user| (*user, 1)).collect();
            assert_eq!(starts(&plan_of(policy, &view), &view), counted(&expected), "{policy}");
        }
    }
}

#[test]
fn free_devices_are_divided_evenly() {
    let users = ["ada", "ben", "cyd"];
    let jobs = (1..=90)
        .map(|number| of_user(users[(number > 30) as usize + (number > 60) as usize], number, gpus(1)));
    let view = with_turns(12, &[("ada", 2), ("ben", 1)], jobs.collect());
    for policy in policies() {
        let plan = plan_of(policy, &view);
        assert_eq!(starts(&plan, &view), counted(&[("ada", 2), ("ben", 3), ("cyd", 4)]), "{policy}");
    }
}

#[test]
fn reasons_are_in_the_order_of_turns() {
    let jobs = vec![
        of_user("ada", 1, gpus(1)),
        of_user("ada", 2, gpus(1)),
        of_user("ben", 3, gpus(1)),
        of_user("ben", 4, gpus(1)),
    ];
    let view = with_turns(2, &[("ada", 2)], jobs);
    for policy in policies() {
        let mut policy_made = parse_policy(policy).unwrap();
        policy_made.learn(&view, &view.as_changes());
        let reasons = policy_made.explain_pending(&view);
        let order: Vec<u64> = reasons.iter().map(|it| it.job.number).collect();
        assert_eq!(order, [3, 4, 1, 2], "{policy}");
    }
}

proptest! {
    #[test]
    fn the_turns_of_one_user_are_the_order_of_the_policy(
        wants in prop::collection::vec((1_u32..4, -2_i32..3), 1..30),
        taken in 0_usize..6,
    ) {
        let jobs = wants.iter().enumerate().map(|(index, (devices, priority))| PendingJob {
            priority: *priority,
            ..of_user("ada", index as u64 + 1, gpus(*devices))
        });
        let with = with_turns(8, &[("ada", taken)], jobs.collect());
        let without = View { fair_shares: None, ..with.clone() };
        for policy in policies() {
            prop_assert_eq!(plan_of(policy, &with), plan_of(policy, &without), "{}", policy);
        }
    }

    #[test]
    fn a_new_job_of_one_user_takes_no_turn_from_another(
        ada in 1_u64..20,
        ben in 1_u64..20,
        free in 1_usize..8,
    ) {
        let jobs = |ada: u64| {
            let of_ada = (1..=ada).map(|number| of_user("ada", number, gpus(1)));
            of_ada.chain((1..=ben).map(|number| of_user("ben", 100 + number, gpus(1)))).collect::<Vec<_>>()
        };
        let (few, more) = (with_turns(free, &[], jobs(ada)), with_turns(free, &[], jobs(10 * ada)));
        let of_ben = |view: &View| starts(&plan_of("fifo", view), view).get("ben").copied().unwrap_or(0);
        let entitled = (free as u64 / 2).min(ben) as usize;
        prop_assert!(of_ben(&more) >= entitled, "{} of {free}", of_ben(&more));
        prop_assert!(of_ben(&few) >= of_ben(&more));
    }
}

#[test]
fn an_urgent_job_displaces_those_of_others_only_while_its_user_has_less() {
    // Ada's long jobs hold all devices; Ben is entitled to half of them and not to more.
    let jobs: Vec<PendingJob> = (1..=8)
        .map(|number| {
            let job = of_user("ben", number, gpus(1));
            let estimate = Estimate { runtime: Some(Span::from_secs(10)), ..Estimate::default() };
            let traits = JobTraits { estimate: Some(estimate), ..JobTraits::clone(&job.traits) };
            PendingJob { traits: Arc::new(traits), ..job }
        })
        .collect();
    let mut view = with_turns(4, &[("ada", 4)], jobs);
    for running in view.running.values_mut() {
        let estimate = Estimate { runtime: Some(Span::from_secs(1_000_000)), ..Estimate::default() };
        running.traits = Arc::new(JobTraits {
            preemptible: true,
            estimate: Some(estimate),
            ..JobTraits::clone(&running.traits)
        });
        running.started_at = Time::EPOCH + Span::from_secs(990_000);
        running.reported_end = Some(Time::EPOCH + Span::from_secs(9_000_000));
    }
    for policy in ["srtf-oracle", "a-srpt"] {
        let plan = plan_of(policy, &view);
        let stops = plan.actions.iter().filter(|it| matches!(it, Action::Preempt { .. })).count();
        assert_eq!(stops, 2, "{policy}: {plan:?}");
        let without = View { fair_shares: None, ..view.clone() };
        let stops = plan_of(policy, &without).actions.len();
        assert_eq!(stops, 4, "{policy} without turns");
    }
    // What a job keeps from others counts, such as host memory, and not what it names.
    view.running.values_mut().for_each(|running| running.holds = 4_000);
    for policy in ["srtf-oracle", "a-srpt"] {
        assert_eq!(plan_of(policy, &view).actions, [], "{policy}: Ada would be left with nothing");
    }
}
