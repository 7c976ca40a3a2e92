//! The nodes of the view as servers for the mapper. What a node consists of is read when it changes, what is
//! free on it for each question.
//!
//! A server's position in the list is that of its node in the view.

use std::collections::BTreeSet;
use std::sync::Arc;

use cohabit_types::{Bandwidth, Demand, NodeId};

use super::free_device_counts::{ChangeTracking, FreeDeviceCounts, count_fitting};
use crate::mapping::{LinkRates, Server};
use crate::{ClusterChange, FreeNodes, NodeView, ViewChange};

/// Bandwidths that stand for those that a node does not report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LinkDefaults {
    /// Between a node and the network.
    pub(crate) network: Bandwidth,
    /// Between two devices of one node.
    pub(crate) interconnect: Bandwidth,
}

/// 25 Gb/s between nodes, 50 GB/s within a node.
impl Default for LinkDefaults {
    fn default() -> LinkDefaults {
        LinkDefaults { network: Bandwidth(25_000_000_000), interconnect: Bandwidth(400_000_000_000) }
    }
}

impl LinkDefaults {
    /// Bandwidth of a node's whole network card, in bytes per second each way.
    fn network(self, node: &NodeView) -> f64 {
        node.links.network.unwrap_or(self.network).bytes_per_second()
    }

    /// Bandwidth of one device of a node to the others, in bytes per second each way.
    fn interconnect(self, node: &NodeView) -> f64 {
        node.links.interconnect.unwrap_or(self.interconnect).bytes_per_second()
    }

    /// The bandwidths of one device of a node.
    pub(crate) fn rates(self, node: &NodeView) -> LinkRates {
        LinkRates::of(self.network(node), in_service(node), self.interconnect(node))
    }
}

/// The servers of the cluster.
#[derive(Debug, Clone)]
pub(super) struct Servers {
    links: LinkDefaults,
    list: Vec<Server>,
    /// The node of each server.
    nodes: Vec<NodeId>,
    /// How many devices of each fit a demand.
    free_counts: FreeDeviceCounts,
    news: StaleNodes,
}

/// Nodes that may have changed since they were last read.
#[derive(Debug, Clone)]
enum StaleNodes {
    /// All: changes were not reported.
    Unknown,
    /// These, by ordinal.
    Nodes(BTreeSet<u64>),
}

impl Servers {
    pub(super) const fn new(links: LinkDefaults) -> Servers {
        Servers {
            links,
            list: Vec::new(),
            nodes: Vec::new(),
            free_counts: FreeDeviceCounts::new(),
            news: StaleNodes::Unknown,
        }
    }

    /// Remembers which nodes changed.
    pub(super) fn learn(&mut self, changes: &[ViewChange]) {
        let changed = changes.iter().filter_map(|change| match change {
            ViewChange::Node(node) => Some(node.ordinal),
            ViewChange::NodeGone(_)
            | ViewChange::Pending(_)
            | ViewChange::Running(_)
            | ViewChange::Gone(_)
            | ViewChange::Shares(_) => None,
        });
        match &mut self.news {
            StaleNodes::Nodes(nodes) => nodes.extend(changed),
            StaleNodes::Unknown => self.news = StaleNodes::Nodes(changed.collect()),
        }
    }

    /// Reads what changed; says whether the nodes still consist of the same parts.
    pub(super) fn refresh(&mut self, nodes: &[NodeView]) -> ClusterChange {
        let news = std::mem::replace(&mut self.news, StaleNodes::Unknown);
        if let Some(changed) = self.changed(&news, nodes) {
            self.free_counts.recount(nodes, &changed);
            return ClusterChange::Same;
        }
        self.free_counts.forget(if matches!(news, StaleNodes::Nodes(_)) {
            ChangeTracking::Kept
        } else {
            ChangeTracking::None
        });
        self.nodes.clear();
        self.nodes.extend(nodes.iter().map(|node| node.id));
        let same = |(server, node)| self.same(server, node);
        if self.list.len() == nodes.len() && self.list.iter().zip(nodes).all(same) {
            return ClusterChange::Same;
        }
        let before = std::mem::take(&mut self.list);
        for node in nodes {
            let server = self.server(node, &before);
            self.list.push(server);
        }
        ClusterChange::Changed
    }

    /// The servers, each with as many free devices as fit the demand; 0 where that is fewer than `least`.
    pub(super) fn with_room(&mut self, demand: &Demand, least: u32, free: &FreeNodes<'_>) -> &[Server] {
        let enough = |devices: u32| if devices >= least { devices } else { 0 };
        for (server, devices) in
            self.list.iter_mut().zip(self.free_counts.of(demand, free.untouched()).iter())
        {
            server.free = enough(*devices);
        }
        for (position, node) in free.touched() {
            self.list[position].free = enough(count_fitting(node, demand));
        }
        &self.list
    }

    /// The positions of the nodes that changed, if they and all others still consist of the same parts.
    fn changed(&self, news: &StaleNodes, nodes: &[NodeView]) -> Option<Vec<usize>> {
        let StaleNodes::Nodes(ordinals) = news else { return None };
        if self.list.len() != nodes.len() {
            return None;
        }
        let known = |position: &usize| {
            let (server, node) = (&self.list[*position], &nodes[*position]);
            self.nodes[*position] == node.id && self.same(server, node)
        };
        let place = |ordinal: &u64| nodes.binary_search_by_key(ordinal, |node| node.ordinal).ok();
        ordinals.iter().map(|ordinal| place(ordinal).filter(known)).collect()
    }

    /// The servers, whatever is free on them.
    pub(super) fn all(&self) -> &[Server] {
        &self.list
    }

    /// The position of a node in the list.
    pub(super) fn position(&self, node: NodeId) -> Option<usize> {
        self.nodes.iter().position(|it| *it == node)
    }

    fn same(&self, server: &Server, node: &NodeView) -> bool {
        server.devices == in_service(node)
            && server.network.to_bits() == self.links.network(node).to_bits()
            && server.interconnect.to_bits() == self.links.interconnect(node).to_bits()
            && *server.model == *model(node)
    }

    fn server(&self, node: &NodeView, before: &[Server]) -> Server {
        let alike = before.iter().chain(self.list.last()).find(|server| *server.model == *model(node));
        Server {
            free: 0,
            devices: in_service(node),
            network: self.links.network(node),
            interconnect: self.links.interconnect(node),
            model: alike.map_or_else(|| Arc::from(model(node)), |server| server.model.clone()),
        }
    }
}

/// Its devices, without those that a person has to see to first.
fn in_service(node: &NodeView) -> u32 {
    node.devices.iter().filter(|device| device.is_in_service()).count() as u32
}

/// The model of its devices. In practice they are all alike; where they are not, the first one counts.
fn model(node: &NodeView) -> &str {
    node.devices.first().map_or("", |device| &device.model)
}
