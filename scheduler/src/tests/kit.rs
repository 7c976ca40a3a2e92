//! Small clusters and jobs.

use std::sync::Arc;

use cohabit_proto::{
    Bytes, Demand, DeviceId, DeviceKind, Gpus, JobId, NodeId, ReasonCode, Share, Sharing, Time,
};

use crate::{Action, DeviceView, JobTraits, NodeView, PendingJob, Plan, View, policy_by_name};

/// A node whose devices have these shares left, in thousandths, and 80 GiB each.
pub(super) fn node(number: u8, free: &[u32]) -> NodeView {
    let device = |(position, free): (usize, &u32)| DeviceView {
        id: DeviceId(format!("gpu-{position}")),
        kind: DeviceKind::Fake,
        model: "test GPU".into(),
        free: Share(*free),
        memory: Some(Bytes(80 << 30)),
        memory_free: Some(Bytes((80 << 30) * u64::from(*free) / 1_000)),
        residents: vec![],
    };
    NodeView {
        id: NodeId(uuid(number)),
        name: format!("node{number}"),
        cpus: 8,
        cpus_free: 8,
        memory: Bytes(64 << 30),
        memory_free: Bytes(64 << 30),
        devices: free.iter().enumerate().map(device).collect(),
    }
}

fn uuid(number: u8) -> uuid::Uuid {
    uuid::Uuid::from_u128(number.into())
}

pub(super) fn gpus(count: u32) -> Demand {
    Demand { gpus: Gpus::Whole(count), ..Demand::default() }
}

pub(super) fn part(thousandths: u32) -> Demand {
    Demand { gpus: Gpus::Part(Share(thousandths)), sharing: Sharing::Shared, ..Demand::default() }
}

/// A pending job, submitted in the order of its number.
pub(super) fn job(number: u64, demand: Demand) -> PendingJob {
    let traits = JobTraits { user: "ada".into(), group: None, model: None, estimate: None, time_limit: None };
    PendingJob {
        id: JobId::new(number),
        priority: 0,
        submitted_at: Time::from_micros(number),
        eligible_at: Time::from_micros(number),
        demand,
        traits: Arc::new(traits),
    }
}

pub(super) fn view(nodes: Vec<NodeView>, pending: Vec<PendingJob>) -> View {
    View { now: Time::from_micros(1_000_000), nodes, pending, running: vec![] }
}

pub(super) fn plan(view: &View) -> Plan {
    policy_by_name("fifo").unwrap().plan(view)
}

/// Numbers of the jobs that are placed, in order.
pub(super) fn placed(plan: &Plan) -> Vec<u64> {
    let number = |action: &Action| match action {
        Action::Place { job, .. } | Action::Preempt { job, .. } => job.number,
    };
    plan.actions.iter().map(number).collect()
}

/// Numbers of the jobs of which the plan says why they wait, with the codes.
pub(super) fn waiting(plan: &Plan) -> Vec<(u64, ReasonCode)> {
    plan.waits.iter().map(|wait| (wait.job.number, wait.code)).collect()
}
