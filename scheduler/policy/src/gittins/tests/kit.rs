//! Small clusters and jobs for tests of the order, and a policy that is watched while it plans.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_types::{Demand, JobId, Time};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use crate::gittins::hazards::Rest;
use crate::gittins::job::{OrderedJob, ReportedWork};
use crate::gittins::{GittinsOrder, OrderOptions};
use crate::interference::InterferenceContext;
use crate::maifs::Agents;
use crate::tests::cluster::{Ran, TestJob};
use crate::tests::kit::node;
use crate::{
    EndedRun, FreeNodes, NodeView, PendingJob, PendingReason, Placer, Plan, Policy, Proposal,
    SensitivityProfiles, Shortage, View, ViewChange, parse_policy,
};

pub(super) fn policy(text: &str) -> Box<dyn Policy> {
    parse_policy(text).unwrap()
}

pub(super) fn nodes(count: u8, devices: usize) -> Vec<NodeView> {
    (1..=count).map(|number| node(number, &vec![1_000; devices])).collect()
}

/// A job of a user and a kind of its own that may not be stopped.
pub(super) fn job(number: u64, arrives_at: f64, demand: Demand, seconds: u64) -> TestJob {
    let mut job = TestJob::new(number, arrives_at, demand, seconds);
    let traits = Arc::make_mut(&mut job.pending.traits);
    (traits.user, traits.name, traits.estimate) = (format!("user {number}"), format!("job {number}"), None);
    traits.preemptible = false;
    job
}

/// The same, which may be stopped.
pub(super) fn preemptible(mut job: TestJob) -> TestJob {
    Arc::make_mut(&mut job.pending.traits).preemptible = true;
    job
}

pub(super) fn named(mut job: TestJob, name: &str) -> TestJob {
    let traits = Arc::make_mut(&mut job.pending.traits);
    (traits.user, traits.name) = ("ada".into(), name.into());
    job
}

pub(super) fn of(ran: &[Ran], number: u64) -> &Ran {
    ran.iter().find(|it| it.job.number == number).unwrap()
}

/// The order with these options, as users write them.
pub(super) fn order<P: Placer>(text: &str, placer: P) -> GittinsOrder<P> {
    let mut options = OrderOptions::default();
    for (key, value) in text.split(',').filter_map(|option| option.split_once('=')) {
        options.set(key, value).unwrap();
    }
    GittinsOrder::new(options, placer)
}

/// Values drawn from a strategy, the same in every run.
pub(super) fn drawn<S: Strategy>(strategy: S, count: usize) -> impl Iterator<Item = S::Value> {
    let mut runner = TestRunner::deterministic();
    (0..count).map(move |_| strategy.new_tree(&mut runner).unwrap().current())
}

pub(super) fn seconds(time: Time) -> f64 {
    time.as_secs_f64()
}

/// A policy, and what a test does after it has learned and after it has planned.
pub(super) struct Watched<O, L, C> {
    policy: O,
    /// Called with what it was told.
    learned: L,
    /// Called with its plan.
    planned: C,
}

/// Watches a policy.
pub(super) const fn watched<O, L, C>(policy: O, learned: L, planned: C) -> Watched<O, L, C>
where
    O: Policy,
    L: FnMut(&mut O, &View, &[ViewChange]) + Send,
    C: FnMut(&View, &Plan, &O) + Send,
{
    Watched { policy, learned, planned }
}

impl<O, L, C> Policy for Watched<O, L, C>
where
    O: Policy,
    L: FnMut(&mut O, &View, &[ViewChange]) + Send,
    C: FnMut(&View, &Plan, &O) + Send,
{
    fn learn(&mut self, view: &View, changes: &[ViewChange]) {
        self.policy.learn(view, changes);
        (self.learned)(&mut self.policy, view, changes);
    }

    fn plan(&mut self, view: &View) -> Plan {
        let plan = self.policy.plan(view);
        (self.planned)(view, &plan, &self.policy);
        plan
    }

    fn explain_pending(&mut self, view: &View) -> Vec<PendingReason> {
        self.policy.explain_pending(view)
    }

    fn dry_run_on(
        &mut self,
        view: &View,
        job: &PendingJob,
        free: &FreeNodes<'_>,
    ) -> Result<Proposal, Shortage> {
        self.policy.dry_run_on(view, job, free)
    }
}

impl Policy for Box<dyn Policy> {
    fn learn(&mut self, view: &View, changes: &[ViewChange]) {
        (**self).learn(view, changes);
    }

    fn plan(&mut self, view: &View) -> Plan {
        (**self).plan(view)
    }

    fn explain_pending(&mut self, view: &View) -> Vec<PendingReason> {
        (**self).explain_pending(view)
    }

    fn dry_run_on(
        &mut self,
        view: &View,
        job: &PendingJob,
        free: &FreeNodes<'_>,
    ) -> Result<Proposal, Shortage> {
        (**self).dry_run_on(view, job, free)
    }

    fn recall(&mut self, ended: &[EndedRun]) {
        (**self).recall(ended);
    }

    fn set_interference(&mut self, context: &InterferenceContext) {
        (**self).set_interference(context);
    }

    fn set_sensitivity(&mut self, profiles: &Arc<SensitivityProfiles>) {
        (**self).set_sensitivity(profiles);
    }

    fn set_agents(&mut self, agents: Box<dyn Agents>) {
        (**self).set_agents(agents);
    }
}

/// Tells the order the true work time of every job as soon as it waits, as if it had reported it.
pub(super) fn tell_totals<P: Placer>(
    order: &mut GittinsOrder<P>,
    changes: &[ViewChange],
    totals: &BTreeMap<JobId, f64>,
) {
    for change in changes {
        let ViewChange::Pending(PendingJob { id, .. }) = change else { continue };
        let Some(known) = order.state.waiting.remove(*id) else { continue };
        let total = totals[id];
        let reported = ReportedWork::Total { first: total, latest: total };
        let job = OrderedJob { reported, ..known };
        let rank = job.rank(Rest::known(total - job.worked()));
        order.state.waiting.insert(job, rank);
    }
}

/// The true work times of these jobs.
pub(super) fn totals(jobs: &[TestJob]) -> BTreeMap<JobId, f64> {
    jobs.iter().map(|job| (job.pending.id, job.iterations as f64)).collect()
}
