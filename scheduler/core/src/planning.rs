//! Questions to the policy, and its answers.
//!
//! At most one question is open. What happens meanwhile is remembered as one wish for another. An answer is
//! checked action by action against the present state; what no longer fits is dropped, and the job's story
//! says so.

use std::sync::Arc;

use cohabit_policy::{Action, Plan, check_shape};
use cohabit_types::{
    AttemptId, Cause, Demand, DeviceId, JobEventKind, JobId, JobSpec, JobState, LaunchMode, NodeId,
    Placement, PlanRequestId, RankPlacement, RankRun, RunOrder, Share, Slowdown, Span, StopReason, Time,
    WorkerKey,
};

use crate::door::Effect;
use crate::head::Head;
use crate::job::{Attempt, Rank, RankPhase};
use crate::rendezvous::RendezvousEndpoint;
use crate::sight::MAX_STARTS_PER_PLAN;
use crate::turn::Transition;

/// Where a job is to start, how long it is expected to run there, and why there and now.
pub(crate) struct PlannedStart {
    pub(crate) placement: Placement,
    pub(crate) runtime: Option<Span>,
    /// What its neighbours are predicted to cost it.
    pub(crate) slowdown: Option<Slowdown>,
    pub(crate) why: String,
}

impl Transition<'_> {
    /// Asks if there is a reason to, and no question is open.
    pub(crate) fn ask_for_plan(&mut self) {
        if !self.head.plan_wanted || self.head.open_ticket.is_some() {
            return;
        }
        self.head.plan_wanted = false;
        let reconsiders = std::mem::take(&mut self.head.reconsiders) && self.head.has_colocated_jobs();
        if self.head.eligible.is_empty() && self.head.wake.is_none() && !reconsiders {
            return;
        }
        self.head.last_ticket += 1;
        let ticket = PlanRequestId(self.head.last_ticket);
        self.head.open_ticket = Some(ticket);
        self.effect(Effect::Plan(ticket));
    }

    /// The policy knows more of interference than before.
    pub(crate) fn learned(&mut self) {
        self.head.learns = true;
        self.reconsider();
    }

    /// Something may be better otherwise, whether or not a job waits: neighbours may have to be separated.
    pub(crate) fn reconsider(&mut self) {
        self.head.reconsiders = self.head.learns;
        self.head.plan_wanted = true;
    }

    pub(crate) fn planned(&mut self, ticket: PlanRequestId, plan: Plan) {
        if self.head.open_ticket != Some(ticket) {
            return;
        }
        self.cause = Cause::Plan(ticket);
        self.head.open_ticket = None;
        self.head.wake = plan.wake;
        self.head.plan_wanted |= plan.actions.len() as u64 >= MAX_STARTS_PER_PLAN;
        for action in plan.actions {
            match action {
                Action::Place { job, placement, runtime, slowdown, why } => {
                    self.place(job, PlannedStart { placement, runtime, slowdown, why });
                }
                Action::Preempt { job, why } => self.preempt(job, &why),
            }
        }
    }

    fn place(&mut self, id: JobId, placing: PlannedStart) {
        if !self.head.eligible.contains(&id) {
            return;
        }
        let submission = &self.head.submissions[&id.number];
        let demand = self.head.demand(id);
        let fit = match submission.array_slots_left() {
            0 => Err("as many members of the array run as may".to_owned()),
            _ => self.head.fits(&demand, &placing.placement),
        };
        match fit {
            Ok(()) => self.start(id, placing),
            Err(why) => self.record_event(id, JobEventKind::PlanDropped(why)),
        }
    }

    fn preempt(&mut self, id: JobId, why: &str) {
        let running = self.head.jobs.get(&id).is_some_and(|job| job.state == JobState::Running);
        if !running {
            let gone = format!("it was to make room ({why}) but does not run");
            self.record_event(id, JobEventKind::PlanDropped(gone));
            return;
        }
        self.stop_attempt(id, StopReason::Preempted);
    }
}

impl Head {
    /// Whether the placement is what the demand asks for, and there is room for it.
    fn fits(&self, demand: &Demand, placement: &Placement) -> Result<(), String> {
        check_shape(demand, placement)?;
        placement.parts.iter().try_for_each(|part| {
            let node = self.nodes.get(&part.node).filter(|node| node.takes_jobs());
            node.ok_or("the plan names a node that takes no jobs")?.view(part.node).fits(demand, part)
        })
    }

    /// A new attempt, and the orders that start it.
    pub(crate) fn new_attempt(
        &self,
        id: JobId,
        placing: &PlannedStart,
        now: Time,
    ) -> (Attempt, Vec<(WorkerKey, RunOrder)>) {
        let number = self.jobs[&id].attempts.last().map_or(0, |attempt| attempt.number) + 1;
        let runs = rank_runs(&placing.placement, self.submissions[&id.number].spec.launch);
        let claims_host = self.demand(id).claims_host();
        let rank = |node: NodeId, run: &RankRun| Rank {
            node,
            node_name: self.nodes[&node].name.clone(),
            devices: run.devices.clone(),
            phase: RankPhase::Ordered,
            enforcement: None,
            host_limits: claims_host.then(|| self.nodes[&node].isolation.host_limits.clone()),
            private_uid: None,
        };
        let mut ranks: Vec<(u32, Rank)> = runs
            .iter()
            .flat_map(|(node, runs)| runs.iter().map(|run| (run.rank, rank(*node, run))))
            .collect();
        // Whoever reports names a rank by its number, and a plan may have numbered them across nodes.
        ranks.sort_by_key(|(number, _)| *number);
        let ranks: Vec<Rank> = ranks.into_iter().map(|(_, rank)| rank).collect();
        let meeting_point = self.meeting_point(id, number, &runs);
        let orders = self.run_orders(id.attempt(number), ranks.len() as u32, meeting_point, runs);
        let attempt = Attempt {
            number,
            placement: placing.placement.clone(),
            meeting_point,
            started_at: now,
            expected: placing.runtime,
            slowdown: placing.slowdown,
            ended_at: None,
            stopping: None,
            stopped: None,
            ranks,
            first_failure: None,
            progress: None,
        };
        (attempt, orders)
    }

    fn run_orders(
        &self,
        attempt: AttemptId,
        world_size: u32,
        meeting_point: Option<RendezvousEndpoint>,
        runs: Vec<(NodeId, Vec<RankRun>)>,
    ) -> Vec<(WorkerKey, RunOrder)> {
        let submission = &self.submissions[&attempt.job.number];
        let demand = self.demand(attempt.job);
        let spec = match demand == submission.spec.demand {
            true => submission.spec.clone(),
            false => Arc::new(JobSpec { demand, ..JobSpec::clone(&submission.spec) }),
        };
        let rendezvous = self.rendezvous(meeting_point);
        let nodes: Vec<String> = runs.iter().map(|(node, _)| self.nodes[node].address.clone()).collect();
        let order = |ranks| RunOrder {
            attempt,
            spec: spec.clone(),
            user: submission.user.clone(),
            account: submission.account().to_owned(),
            role: submission.role,
            nodes: nodes.clone(),
            world_size,
            rendezvous: rendezvous.clone(),
            ranks,
        };
        runs.into_iter().filter_map(|(node, ranks)| Some((self.link_of(node)?, order(ranks)))).collect()
    }

    pub(crate) fn placed_event(&self, id: JobId, attempt: &Attempt, now: Time, why: String) -> JobEventKind {
        let parts = &attempt.placement.parts;
        JobEventKind::Placed {
            attempt: id.attempt(attempt.number),
            nodes: parts.iter().map(|part| self.nodes[&part.node].name.clone()).collect(),
            devices: parts.iter().flat_map(|part| part.devices.clone()).collect(),
            share: parts.first().map_or(Share::WHOLE, |part| part.share),
            waited: now.since(self.jobs[&id].eligible_at),
            why,
        }
    }
}

/// The ranks on each node: one that holds all its devices there, or one for each device, numbered as the
/// placement says or in the order of parts and devices.
fn rank_runs(placement: &Placement, launch: LaunchMode) -> Vec<(NodeId, Vec<RankRun>)> {
    let mut next_rank = 0;
    let mut runs = Vec::new();
    for (node_rank, part) in placement.parts.iter().enumerate() {
        let holdings = holdings(part, launch, next_rank);
        next_rank += holdings.len() as u32;
        let run = |(local_rank, (rank, devices))| RankRun {
            rank,
            local_rank: local_rank as u32,
            node_rank: node_rank as u32,
            devices,
            share: part.share,
        };
        runs.push((part.node, holdings.into_iter().enumerate().map(run).collect()));
    }
    runs
}

/// The ranks of one part with their devices; the first free number is `next`.
fn holdings(part: &RankPlacement, launch: LaunchMode, next: u32) -> Vec<(u32, Vec<DeviceId>)> {
    let devices = part.devices.iter().cloned();
    if launch != LaunchMode::PerGpu || part.devices.is_empty() {
        return vec![(next, devices.collect())];
    }
    let number = |position: usize| part.ranks.get(position).copied().unwrap_or(next + position as u32);
    devices.enumerate().map(|(position, device)| (number(position), vec![device])).collect()
}
