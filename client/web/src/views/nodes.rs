//! The nodes: their state, what they have and what of it is in use.

use askama::Template;
use cohabit_client::types::{JobId, NodeRecord};
use cohabit_console::records::local_time;
use jiff::tz::TimeZone;

use super::line;
use super::overview::model;
use super::state_badge::StateBadge;
use crate::cluster::Cluster;

/// All nodes.
#[derive(Template)]
#[template(path = "nodes.html")]
pub(crate) struct NodesView {
    pub(crate) rows: Vec<NodeRow>,
}

/// A node.
#[derive(Debug)]
pub(crate) struct NodeRow {
    pub(crate) name: String,
    pub(crate) state: StateBadge,
    pub(crate) since: String,
    pub(crate) problem: String,
    pub(crate) devices: String,
    pub(crate) held: String,
    pub(crate) cores: String,
    pub(crate) memory: String,
    pub(crate) jobs: Vec<JobId>,
    pub(crate) address: String,
    pub(crate) build: String,
}

impl NodesView {
    pub(crate) fn new(cluster: &Cluster, zone: &TimeZone) -> NodesView {
        NodesView { rows: cluster.nodes.iter().map(|node| NodeRow::new(node, zone)).collect() }
    }
}

impl NodeRow {
    fn new(node: &NodeRecord, zone: &TimeZone) -> NodeRow {
        let held: f64 = node.devices.iter().map(|device| device.used.as_f64()).sum();
        NodeRow {
            name: line(&node.name),
            state: node.state.into(),
            since: local_time(node.since, zone),
            problem: node.problem.as_deref().map_or(String::new(), line),
            devices: line(&models(node)),
            held: format!("{} of {}", (held * 100.0).round() / 100.0, node.devices.len()),
            cores: format!("{} of {}", node.cpus_used, node.cpus),
            memory: format!("{} of {}", node.memory_used, node.memory),
            jobs: node.jobs.clone(),
            address: line(&node.address),
            build: line(&node.build),
        }
    }
}

/// `2× NVIDIA H200, 1× host slot`.
fn models(node: &NodeRecord) -> String {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for model in node.devices.iter().map(model) {
        match counts.iter_mut().find(|(known, _)| *known == model) {
            Some((_, count)) => *count += 1,
            None => counts.push((model, 1)),
        }
    }
    counts.iter().map(|(model, count)| format!("{count}× {model}")).collect::<Vec<_>>().join(", ")
}
