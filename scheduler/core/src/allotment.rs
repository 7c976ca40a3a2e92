//! The cores and the host memory of running jobs change: a plan asks for it, the worker is told, and answers.
//!
//! An attempt holds the larger of what it had and what it is to have until its worker has answered. So what
//! it gives up is free for others only when no process can use it any more, whatever happens to the order
//! or to the answer: both may be lost with the link, and the order is repeated over the next one.

use std::collections::BTreeSet;

use cohabit_types::{AttemptId, HostShare, JobEventKind, JobId, JobState, NodeId, Order, WorkerKey};

use crate::head::Head;
use crate::interface::Effect;
use crate::job::{Attempt, OrderedAllotment, RankPhase};
use crate::transition::Transition;

impl Transition<'_> {
    /// A plan changes what a running job holds. What no longer fits is dropped, and the history says why.
    pub(crate) fn allot(&mut self, id: JobId, to: HostShare, why: String) {
        match self.head.check_allotment(id, to) {
            Ok(None) => {}
            Ok(Some((key, from))) => self.order_allotment(id, key, OrderedAllotment { from, to, why }),
            Err(why) if self.head.jobs.contains_key(&id) => {
                self.record_event(id, JobEventKind::PlanDropped(why));
            }
            Err(_) => {}
        }
    }

    fn order_allotment(&mut self, id: JobId, key: WorkerKey, ordered: OrderedAllotment) {
        let OrderedAllotment { from, to, .. } = ordered;
        let Some(attempt) = self.job_mut(id).live_attempt_mut() else { return };
        let number = attempt.number;
        attempt.ordered_allotment = Some(ordered);
        self.set_host_share(id, from.at_least(to));
        self.effect(Effect::SendOrder(key, Order::Allot { attempt: id.attempt(number), host: to }));
        self.changed(id);
    }

    /// The worker has changed what the attempt may use, or has not been able to.
    pub(crate) fn allotted(&mut self, node: NodeId, attempt: AttemptId, host: HostShare) {
        if !self.head.awaits_allotment(node, attempt) {
            return;
        }
        let (id, now) = (attempt.job, self.now);
        let Some(live) = self.job_mut(id).live_attempt_mut() else { return };
        let Some(OrderedAllotment { from, to, why }) = live.ordered_allotment.take() else { return };
        // Whatever a worker says, it was never told to give more, or to leave less.
        let in_force = host.at_least(from.at_most(to)).at_most(from.at_least(to));
        live.allotted_at = Some(now);
        self.set_host_share(id, in_force);
        self.record_event(id, JobEventKind::Allotted { attempt, from, to: in_force, why });
        self.changed(id);
        self.head.replan_needed = true;
    }

    /// Over a new link, a worker is told again what it has not answered. One that can no longer change
    /// anything never will, and the attempts keep what they may use at most.
    pub(crate) fn repeat_allotments(&mut self, key: WorkerKey) {
        let Some(node) = self.head.nodes.get(&key.node) else { return };
        let can_change = node.changes_host_shares;
        for id in node.jobs.clone() {
            let Some(live) = self.head.jobs.get(&id).and_then(|job| job.live_attempt()) else { continue };
            let attempt = id.attempt(live.number);
            let Some(ordered) = live.ordered_allotment.clone() else { continue };
            if can_change {
                self.effect(Effect::SendOrder(key, Order::Allot { attempt, host: ordered.to }));
            } else {
                self.allotted(key.node, attempt, ordered.from.at_least(ordered.to));
            }
        }
    }

    /// The live attempt of a job on one node holds so much there from now on.
    fn set_host_share(&mut self, id: JobId, share: HostShare) {
        let demand = self.head.demand(id);
        let Some(live) = self.job_mut(id).live_attempt_mut() else { return };
        let Some(part) = live.placement.parts.first_mut() else { return };
        let (node, before) = (part.node, part.host_share(&demand));
        part.host = Some(share);
        if let Some(node) = self.node_mut(node) {
            node.give_back(before);
            node.hold(share);
        }
    }
}

impl Head {
    /// Whether a plan may give a job so much: where it runs, and what it has now, unless it has that already.
    fn check_allotment(&self, id: JobId, to: HostShare) -> Result<Option<(WorkerKey, HostShare)>, String> {
        let running = self.jobs.get(&id).filter(|job| job.state() == JobState::Running);
        let live = running.and_then(|job| job.live_attempt());
        let live = live.ok_or_else(|| format!("the plan gives it {to}, but it does not run"))?;
        let demand = self.demand(id);
        if !demand.is_fungible() {
            return Err(format!("the plan gives it {to}, but what it claims is fixed"));
        }
        if !demand.least_host().is_within(to) || !to.is_within(demand.most_host()) {
            let (least, most) = (demand.least_host(), demand.most_host());
            return Err(format!("the plan gives it {to}, but it takes {least} to {most}"));
        }
        if live.ordered_allotment.is_some() || !runs_wholly(live) {
            return Err(format!("the plan gives it {to}, but its last change is not done yet"));
        }
        let part = live.placement.parts.first().ok_or("it runs nowhere")?;
        let node = self.nodes.get(&part.node).ok_or("the plan uses a node that is unknown")?;
        let key =
            node.key().ok_or_else(|| format!("the plan gives it {to}, but node {} is away", node.name))?;
        if !node.changes_host_shares {
            return Err(format!("the plan gives it {to}, but node {} cannot change that", node.name));
        }
        let from = part.host_share(&demand);
        if !to.saturating_sub(from).is_within(node.host_free()) {
            let (name, free) = (&node.name, node.host_free());
            return Err(format!(
                "the plan gives it {to} instead of {from}, but node {name} has only {free} left"
            ));
        }
        Ok((from != to).then_some((key, from)))
    }

    /// The jobs with a live attempt whose cores and host memory may change.
    pub(crate) fn live_fungible(&self) -> BTreeSet<JobId> {
        let live = |id: &&JobId| self.jobs.get(*id).is_some_and(|job| job.live_attempt().is_some());
        self.active.iter().filter(live).filter(|id| self.demand(**id).is_fungible()).copied().collect()
    }

    /// Whether a live attempt on this node was told to change what it holds, and its worker has not answered.
    pub(crate) fn awaits_allotment(&self, node: NodeId, attempt: AttemptId) -> bool {
        let live = self.jobs.get(&attempt.job).and_then(|job| job.live_attempt());
        live.is_some_and(|live| {
            live.number == attempt.attempt
                && live.ordered_allotment.is_some()
                && live.placement.part_on(node).is_some()
        })
    }
}

/// Whether every rank runs: a rank that is being started sets the limits that it was started with.
fn runs_wholly(attempt: &Attempt) -> bool {
    attempt.ranks.iter().all(|rank| rank.phase != RankPhase::Ordered)
}
