//! Whatever happens in whatever order, between two plans or in one batch: each pending job is known exactly
//! once, and no other job is.

use cohabit_types::{JobId, Placement, Span, Time};
use proptest::prelude::*;

use crate::a_srpt::{ASrpt, ASrptOptions};
use crate::tests::cluster::TestJob;
use crate::tests::kit::{gpus, node};
use crate::{Action, FirstFit, PendingJob, Policy, RunningJob, View, ViewChange};

/// A step: what happens to which job or node, and whether a plan follows.
#[derive(Debug, Clone, Copy)]
enum Step {
    Pend(u64),
    Run(u64),
    Leave(u64),
    Join(u8),
    Part(u8),
    Plan(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1_u64..12).prop_map(Step::Pend),
        3 => (1_u64..12).prop_map(Step::Run),
        2 => (1_u64..12).prop_map(Step::Leave),
        1 => (1_u8..4).prop_map(Step::Join),
        1 => (1_u8..4).prop_map(Step::Part),
        3 => (0_u64..4_000_000).prop_map(Step::Plan),
    ];
    prop::collection::vec(step, 1..80)
}

fn pending(number: u64, at: Time) -> PendingJob {
    let job = TestJob::new(number, 0.0, gpus(number as u32 % 3), number % 5).pending;
    PendingJob { submitted_at: at, eligible_at: at, priority: number as i32 % 2, ..job }
}

fn running(number: u64, at: Time) -> RunningJob {
    pending(number, at).placed(Placement { parts: Vec::new() }, at)
}

fn change(step: Step, view: &View) -> Option<ViewChange> {
    match step {
        Step::Pend(job) => Some(ViewChange::Pending(pending(job, view.now))),
        Step::Run(job) => Some(ViewChange::Running(running(job, view.now))),
        Step::Leave(job) => Some(ViewChange::Gone(JobId::new(job))),
        Step::Join(number) => Some(ViewChange::Node(node(number, &[1_000, 500]))),
        Step::Part(number) => Some(ViewChange::NodeGone(node(number, &[]).id)),
        Step::Plan(_) => None,
    }
}

proptest! {
    #[test]
    fn exactly_the_pending_jobs_are_known_once_each(steps in steps(), variant in 0_usize..3) {
        let mut options = ASrptOptions::default();
        let switch = [("eager-start", "off"), ("eager-start", "on"), ("virtual-machine", "off")][variant];
        options.set(switch.0, switch.1).unwrap();
        let mut policy = ASrpt::new(&options, FirstFit);
        let (mut view, mut changes) = (View::default(), Vec::new());
        for step in steps {
            if let Some(change) = change(step, &view) {
                view.apply(std::slice::from_ref(&change));
                changes.push(change);
            }
            if let Step::Plan(pause) = step {
                view.now += Span::from_micros(pause);
                policy.learn(&view, &std::mem::take(&mut changes));
                let plan = policy.plan(&view);
                prop_assert!(plan.wake.is_none_or(|at| at > view.now));
                for action in plan.actions {
                    let Action::Place { job, .. } = action else { panic!("no job is stopped") };
                    prop_assert!(view.pending.contains_key(&job));
                }
                let reasons = policy.explain_pending(&view).into_iter();
                let mut explained: Vec<JobId> = reasons.map(|it| it.job).collect();
                explained.sort_unstable();
                prop_assert_eq!(explained, view.pending.keys().copied().collect::<Vec<_>>());
            }
        }
    }
}
