//! From a planned start to an attempt: its ranks, their devices, and the orders for the workers.

use std::sync::Arc;

use cohabit_types::{
    AttemptId, Demand, DeviceId, HostShare, JobEventKind, JobId, JobSpec, LaunchMode, NodeId, Placement,
    RankPlacement, RankRun, RunOrder, Share, Slowdown, Span, Time, WorkerKey,
};

use crate::head::Head;
use crate::job::{Attempt, Rank, RankPhase, RendezvousEndpoint};

/// A start that a policy planned.
pub(crate) struct PlannedStart {
    pub(crate) placement: Placement,
    /// How long the job is expected to run there.
    pub(crate) runtime: Option<Span>,
    /// The slowdown by jobs on the same devices that is predicted.
    pub(crate) slowdown: Option<Slowdown>,
    /// Why there and now, for people.
    pub(crate) why: String,
}

impl Head {
    /// The next attempt of a job, and the orders that start it.
    pub(crate) fn new_attempt(
        &self,
        id: JobId,
        planned: &PlannedStart,
        now: Time,
    ) -> (Attempt, Vec<(WorkerKey, RunOrder)>) {
        let number = self.next_attempt(id);
        let runs = rank_runs(&planned.placement, &self.submissions[&id.number].spec);
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
        // Reports name a rank by its number, and a plan may have numbered ranks across nodes.
        ranks.sort_by_key(|(number, _)| *number);
        let ranks: Vec<Rank> = ranks.into_iter().map(|(_, rank)| rank).collect();
        let port = || self.choose_rendezvous_endpoint(id, number, &runs);
        let rendezvous = self.needs_port(id.number).then(port).flatten();
        let world_size = ranks.len() as u32;
        let orders = self.run_orders(id.attempt(number), world_size, rendezvous, &planned.placement, runs);
        let attempt = Attempt {
            number,
            holds: self.held_by(&self.demand(id), &planned.placement),
            placement: planned.placement.clone(),
            rendezvous,
            started_at: now,
            ordered_at: None,
            expected_runtime: planned.runtime,
            predicted_slowdown: planned.slowdown,
            stop_reported: None,
            ranks,
            first_failure: None,
            progress: None,
            allotted_at: None,
            idle_since: None,
            ordered_allotment: None,
        };
        (attempt, orders)
    }

    /// One order for each node that is linked.
    fn run_orders(
        &self,
        attempt: AttemptId,
        world_size: u32,
        endpoint: Option<RendezvousEndpoint>,
        placement: &Placement,
        runs: Vec<(NodeId, Vec<RankRun>)>,
    ) -> Vec<(WorkerKey, RunOrder)> {
        let submission = &self.submissions[&attempt.job.number];
        let demand = self.demand(attempt.job);
        let submitted = &submission.spec;
        let checkpoint = submitted.checkpoint_of(attempt.job);
        let is_same = demand == submitted.demand && checkpoint == submitted.checkpoint;
        let spec = match submitted.for_member(attempt.job.index) {
            None if is_same => submitted.clone(),
            own => {
                let own = own.unwrap_or_else(|| JobSpec::clone(submitted));
                Arc::new(JobSpec { demand, checkpoint, ..own })
            }
        };
        let rendezvous = self.rendezvous(endpoint);
        let nodes: Vec<String> = runs.iter().map(|(node, _)| self.nodes[node].address.clone()).collect();
        let order = |node, ranks: Vec<RankRun>| RunOrder {
            checkpoints: ranks
                .first()
                .and_then(|rank| self.checkpoint_source(attempt.job, node, rank.node_rank as usize)),
            attempt,
            spec: with_host_share(&spec, placement.part_on(node)),
            user: submission.user.clone(),
            account: submission.account().to_owned(),
            role: submission.role,
            nodes: nodes.clone(),
            world_size,
            rendezvous: rendezvous.clone(),
            ranks,
            application: None,
            idle_after: self.idle_told_after(submitted),
            after: None,
            place: self.application_place(attempt, node, rendezvous.as_ref()),
        };
        runs.into_iter().filter_map(|(node, ranks)| Some((self.link_of(node)?, order(node, ranks)))).collect()
    }

    /// What the job's history says about its start.
    pub(crate) fn placed_event(&self, id: JobId, attempt: &Attempt, now: Time, why: String) -> JobEventKind {
        let parts = &attempt.placement.parts;
        JobEventKind::Placed {
            attempt: id.attempt(attempt.number),
            nodes: parts.iter().map(|part| self.nodes[&part.node].name.clone()).collect(),
            devices: parts.iter().flat_map(|part| part.devices.clone()).collect(),
            share: parts.first().map_or(Share::WHOLE, |part| part.share),
            waited: now.since(self.jobs[&id].waiting().map_or(now, |waiting| waiting.eligible_at)),
            why,
        }
    }
}

/// The specification as a worker gets it: its demand says what the job holds on this node.
fn with_host_share(spec: &Arc<JobSpec>, part: Option<&RankPlacement>) -> Arc<JobSpec> {
    let Some(HostShare { cpus, memory }) = part.and_then(|part| part.host) else { return spec.clone() };
    let demand = Demand { cpus, memory, ..spec.demand };
    Arc::new(JobSpec { demand, ..JobSpec::clone(spec) })
}

/// The ranks on each node: one that holds all its devices there, or one for each device, or some without
/// devices. They are numbered as the placement says, or in the order of parts and devices.
fn rank_runs(placement: &Placement, spec: &JobSpec) -> Vec<(NodeId, Vec<RankRun>)> {
    let mut next_rank = 0;
    let mut runs = Vec::new();
    for (node_rank, part) in placement.parts.iter().enumerate() {
        let holdings = holdings(part, spec, next_rank);
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

/// The ranks of one part with their devices. `next` is the first free number.
fn holdings(part: &RankPlacement, spec: &JobSpec, next: u32) -> Vec<(u32, Vec<DeviceId>)> {
    let devices = part.devices.iter().cloned();
    if part.devices.is_empty() {
        return (next..).take(spec.ranks_without_devices() as usize).map(|rank| (rank, Vec::new())).collect();
    }
    if spec.launch != LaunchMode::PerGpu {
        return vec![(next, devices.collect())];
    }
    let number = |position: usize| part.ranks.get(position).copied().unwrap_or(next + position as u32);
    devices.enumerate().map(|(position, device)| (number(position), vec![device])).collect()
}
