//! Small clusters and jobs.

use std::sync::Arc;

use cohabit_types::{
    Bytes, Demand, DeviceId, DeviceKind, GpuRequest, JobId, LinkBandwidths, NodeId, ReasonCode, Share,
    Sharing, Spread, Time,
};

use crate::{
    Action, AttainedTime, DeviceAvailability, DeviceView, FreeNodes, JobTraits, NodeView, PendingJob, Plan,
    Policy, SharingTerms, View, check_shape, parse_policy,
};

/// A node whose devices have these free shares, in thousandths, and 80 GiB each.
pub(crate) fn node(number: u8, free: &[u32]) -> NodeView {
    let device = |(position, free): (usize, &u32)| DeviceView {
        id: DeviceId(format!("gpu-{position}").into()),
        kind: DeviceKind::Fake,
        model: "test GPU".into(),
        free: Share(*free),
        memory: Some(Bytes(80 << 30)),
        memory_free: Some(Bytes((80 << 30) * u64::from(*free) / 1_000)),
        jobs: vec![],
        availability: DeviceAvailability::Open,
        sharing: SharingTerms::default(),
        foreign_memory: Bytes::ZERO,
        peers: vec![],
    };
    NodeView {
        id: NodeId(uuid(number)),
        ordinal: number.into(),
        name: format!("node{number}"),
        cpus: 8,
        cpus_free: 8,
        max_jobs: None,
        jobs: 0,
        memory: Bytes(64 << 30),
        memory_free: Bytes(64 << 30),
        links: LinkBandwidths::default(),
        owner: None,
        windows: Vec::new(),
        fetches_code: true,
        application_ports: true,
        changes_host_shares: true,
        devices: free.iter().enumerate().map(device).collect(),
    }
}

fn uuid(number: u8) -> uuid::Uuid {
    uuid::Uuid::from_u128(number.into())
}

pub(crate) fn gpus(count: u32) -> Demand {
    Demand { gpus: GpuRequest::Whole(count), ..Demand::default() }
}

/// Whole devices on any nodes.
pub(crate) fn anywhere(count: u32) -> Demand {
    Demand { spread: Spread::Free, ..gpus(count) }
}

/// Part of a device that may be shared: the demand states its memory.
pub(crate) fn part(thousandths: u32) -> Demand {
    let gpu_memory = Some(Bytes(1 << 30));
    Demand {
        gpus: GpuRequest::Part(Share(thousandths)),
        sharing: Sharing::Shared,
        gpu_memory,
        ..Demand::default()
    }
}

/// A pending job that may be stopped, submitted in the order of its number.
pub(crate) fn job(number: u64, demand: Demand) -> PendingJob {
    let traits = JobTraits { user: "ada".into(), preemptible: true, ..JobTraits::default() };
    PendingJob {
        id: JobId::new(number),
        priority: 0,
        submitted_at: Time::from_micros(number),
        eligible_at: Time::from_micros(number),
        demand,
        attained: AttainedTime::default(),
        traits: Arc::new(traits),
    }
}

pub(crate) fn view(nodes: Vec<NodeView>, pending: Vec<PendingJob>) -> View {
    let pending = pending.into_iter().map(|job| (job.id, job)).collect();
    View { now: Time::from_micros(1_000_000), nodes, pending, ..View::default() }
}

/// The first plan of FIFO for this view.
pub(crate) fn plan(view: &View) -> Plan {
    let mut policy = fifo();
    policy.learn(view, &view.as_changes());
    policy.plan(view)
}

pub(crate) fn fifo() -> Box<dyn Policy> {
    parse_policy("fifo").unwrap()
}

/// Whether the placement has the shape that the demand asks for, and fits.
pub(crate) fn fits(
    free: &FreeNodes,
    demand: &Demand,
    placement: &cohabit_types::Placement,
) -> Result<(), String> {
    check_shape(demand, placement)?;
    placement.parts.iter().try_for_each(|part| {
        let node = free.nodes().find(|node| node.id == part.node);
        node.ok_or("the plan names a node that takes no jobs")?.fits(demand, part)
    })
}

/// The numbers of the jobs that start, in order.
pub(crate) fn placed(plan: &Plan) -> Vec<u64> {
    let number = |action: &Action| match action {
        Action::Place { job, .. }
        | Action::Preempt { job, .. }
        | Action::Reclaim { job, .. }
        | Action::StopIdle { job, .. }
        | Action::Allot { job, .. } => job.number,
    };
    plan.actions.iter().map(number).collect()
}

/// Why this job waits.
pub(crate) fn wait(view: &View, number: u64) -> (ReasonCode, String) {
    let mut policy = fifo();
    policy.learn(view, &view.as_changes());
    let reason = policy.explain_pending(view).into_iter().find(|it| it.job.number == number).unwrap();
    (reason.code, reason.why)
}
