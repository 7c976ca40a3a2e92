//! Questions to the policy, and its answers.
//!
//! At most one question is open. What happens meanwhile is remembered as one wish for another. An answer is
//! checked action by action against the present state; what no longer fits is dropped, and the job's story
//! says so.

use std::ops::Bound;

use cohabit_proto::{
    Cause, Demand, Happening, JobId, JobState, Launch, NodeId, Placement, RankRun, RunOrder, Share,
    StopReason, Ticket, Time, WorkerKey,
};
use cohabit_scheduler::{Action, FreeNodes, NodeView, PendingJob, Plan, RunningJob, View};

use crate::door::Effect;
use crate::head::Head;
use crate::job::{Attempt, Rank, RankPhase};
use crate::turn::Turn;

/// Jobs that claim nothing could start without end; so many of an array are shown, and started, at once.
const BATCH: u64 = 1_000;

impl Turn<'_> {
    /// Asks if there is a reason to, and no question is open.
    pub(crate) fn ask_for_plan(&mut self) {
        if !self.head.plan_wanted || self.head.open_ticket.is_some() {
            return;
        }
        self.head.plan_wanted = false;
        if self.head.eligible.is_empty() && self.head.wake.is_none() {
            return;
        }
        self.head.last_ticket += 1;
        let ticket = Ticket(self.head.last_ticket);
        self.head.open_ticket = Some(ticket);
        self.effect(Effect::Plan(ticket));
    }

    pub(crate) fn planned(&mut self, ticket: Ticket, plan: Plan) {
        if self.head.open_ticket != Some(ticket) {
            return;
        }
        self.cause = Cause::Plan(ticket);
        self.head.open_ticket = None;
        self.head.wake = plan.wake;
        self.head.live.waits = plan.waits.into_iter().map(|wait| (wait.job, (wait.code, wait.why))).collect();
        self.head.plan_wanted |= plan.actions.len() as u64 >= BATCH;
        let mut free = FreeNodes::new(&self.head.node_views());
        for action in plan.actions {
            match action {
                Action::Place { job, placement, why } => self.place(job, placement, why, &mut free),
                Action::Preempt { job, why } => self.preempt(job, &why),
            }
        }
    }

    fn place(&mut self, id: JobId, placement: Placement, why: String, free: &mut FreeNodes) {
        if !self.head.eligible.contains(&id) {
            return;
        }
        let submission = &self.head.submissions[&id.number];
        let demand = submission.spec.demand;
        let fit = match submission.may_place() {
            0 => Err("as many members of the array run as may".to_owned()),
            _ => free.fits(&demand, &placement),
        };
        match fit {
            Ok(()) => {
                free.take(&demand, &placement);
                self.start(id, placement, why);
            }
            Err(why) => self.tell(id, Happening::PlanDropped(why)),
        }
    }

    fn preempt(&mut self, id: JobId, why: &str) {
        let running = self.head.jobs.get(&id).is_some_and(|job| job.state == JobState::Running);
        if !running {
            let gone = format!("it was to make room ({why}) but does not run");
            self.tell(id, Happening::PlanDropped(gone));
            return;
        }
        self.stop_attempt(id, StopReason::Preempted);
    }
}

impl Head {
    /// What a policy may see.
    pub fn view(&self, now: Time) -> View {
        View { now, nodes: self.node_views(), pending: self.pending_jobs(), running: self.running_jobs(now) }
    }

    /// Nodes that take jobs, in the order in which they joined.
    pub(crate) fn node_views(&self) -> Vec<NodeView> {
        let mut open: Vec<_> = self.nodes.iter().filter(|(_, node)| node.takes_jobs()).collect();
        open.sort_by_key(|(_, node)| node.ordinal);
        open.into_iter().map(|(id, node)| node.view(*id)).collect()
    }

    fn pending_jobs(&self) -> Vec<PendingJob> {
        let mut pending = Vec::new();
        let mut from = Bound::Unbounded;
        while let Some(first) = self.eligible.range((from, Bound::Unbounded)).next() {
            let last = JobId::member(first.number, u32::MAX);
            let submission = &self.submissions[&first.number];
            let shown = submission.may_place().min(self.most_at_once(&submission.spec.demand)) as usize;
            pending.extend(self.eligible.range(*first..=last).take(shown).map(|id| self.pending_job(*id)));
            from = Bound::Excluded(last);
        }
        pending
    }

    fn pending_job(&self, id: JobId) -> PendingJob {
        let submission = &self.submissions[&id.number];
        PendingJob {
            id,
            priority: submission.spec.priority,
            submitted_at: submission.submitted_at,
            eligible_at: self.jobs[&id].eligible_at,
            demand: submission.spec.demand,
            traits: submission.traits(),
        }
    }

    /// No more jobs with this demand than this could start at once, whatever is free.
    fn most_at_once(&self, demand: &Demand) -> u64 {
        let devices: u64 = self.nodes.values().map(|node| node.devices.len() as u64).sum();
        let cpus: u64 = self.nodes.values().map(|node| u64::from(node.cpus)).sum();
        let a_job = u64::from(demand.devices()) * u64::from(demand.share().0) * u64::from(demand.nodes);
        match (a_job, demand.cpus) {
            (0, 0) => BATCH,
            (0, cores) => (cpus / u64::from(cores)).max(1),
            (share, _) => (devices * u64::from(Share::WHOLE.0) / share).max(1),
        }
    }

    fn running_jobs(&self, now: Time) -> Vec<RunningJob> {
        let running = |id: &JobId| {
            let attempt = self.jobs[id].live_attempt()?;
            let submission = &self.submissions[&id.number];
            let progress = self.live.progress.get(&id.attempt(attempt.number));
            let remaining = progress.and_then(|it| Some((it.at + it.remaining()?).since(now)));
            Some(RunningJob {
                id: *id,
                started_at: attempt.started_at,
                demand: submission.spec.demand,
                placement: attempt.placement.clone(),
                remaining,
                traits: submission.traits(),
            })
        };
        let placed: std::collections::BTreeSet<JobId> =
            self.nodes.values().flat_map(|node| node.jobs.iter().copied()).collect();
        placed.iter().filter_map(running).collect()
    }

    /// A new attempt, and the orders that start it.
    pub(crate) fn new_attempt(
        &self,
        id: JobId,
        placement: Placement,
        now: Time,
    ) -> (Attempt, Vec<(WorkerKey, RunOrder)>) {
        let number = self.jobs[&id].attempts.last().map_or(0, |attempt| attempt.number) + 1;
        let runs = rank_runs(&placement, self.submissions[&id.number].spec.launch);
        let rank = |node: NodeId, run: &RankRun| Rank {
            node,
            node_name: self.nodes[&node].name.clone(),
            devices: run.devices.clone(),
            phase: RankPhase::Ordered,
        };
        let ranks: Vec<Rank> =
            runs.iter().flat_map(|(node, runs)| runs.iter().map(|run| rank(*node, run))).collect();
        let orders = self.run_orders(id, number, ranks.len() as u32, runs);
        let attempt = Attempt {
            number,
            placement,
            started_at: now,
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
        id: JobId,
        attempt: u32,
        world_size: u32,
        runs: Vec<(NodeId, Vec<RankRun>)>,
    ) -> Vec<(WorkerKey, RunOrder)> {
        let submission = &self.submissions[&id.number];
        let nodes: Vec<String> = runs.iter().map(|(node, _)| self.nodes[node].address.clone()).collect();
        let order = |ranks| RunOrder {
            attempt: id.attempt(attempt),
            spec: submission.spec.clone(),
            user: submission.user.clone(),
            nodes: nodes.clone(),
            world_size,
            ranks,
        };
        runs.into_iter().filter_map(|(node, ranks)| Some((self.link_of(node)?, order(ranks)))).collect()
    }

    pub(crate) fn placed_chapter(&self, id: JobId, attempt: &Attempt, now: Time, why: String) -> Happening {
        let parts = &attempt.placement.parts;
        Happening::Placed {
            attempt: id.attempt(attempt.number),
            nodes: parts.iter().map(|part| self.nodes[&part.node].name.clone()).collect(),
            devices: parts.iter().flat_map(|part| part.devices.clone()).collect(),
            share: parts.first().map_or(Share::WHOLE, |part| part.share),
            waited: now.since(self.jobs[&id].eligible_at),
            why,
        }
    }
}

/// The ranks on each node: one that holds all its devices there, or one for each device.
fn rank_runs(placement: &Placement, launch: Launch) -> Vec<(NodeId, Vec<RankRun>)> {
    let mut next_rank = 0;
    let mut runs = Vec::new();
    for (node_rank, part) in placement.parts.iter().enumerate() {
        let one_each = launch == Launch::PerGpu && !part.devices.is_empty();
        let holdings = if one_each {
            part.devices.iter().map(|device| vec![device.clone()]).collect()
        } else {
            vec![part.devices.clone()]
        };
        let first = next_rank;
        next_rank += holdings.len() as u32;
        let run = |(local_rank, devices)| RankRun {
            rank: first + local_rank as u32,
            local_rank: local_rank as u32,
            node_rank: node_rank as u32,
            devices,
            share: part.share,
        };
        runs.push((part.node, holdings.into_iter().enumerate().map(run).collect()));
    }
    runs
}
