//! The nodes of the view as the mapper's servers: what they are made of is looked at when they change, what
//! is free on them for each question.
//!
//! Positions in the list are those of the view's nodes.

use std::sync::Arc;

use cohabit_proto::{Bandwidth, Demand, NodeId};

use crate::mapping::Server;
use crate::{Cluster, FreeNodes, NodeView};

/// How fast links are taken to be that a node does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkDefaults {
    /// Between a node and the network.
    pub network: Bandwidth,
    /// Between a device and the others of its node.
    pub interconnect: Bandwidth,
}

/// 25 Gb/s between nodes and 50 GB/s within.
impl Default for LinkDefaults {
    fn default() -> LinkDefaults {
        LinkDefaults { network: Bandwidth(25_000_000_000), interconnect: Bandwidth(400_000_000_000) }
    }
}

/// The servers of the cluster.
#[derive(Debug, Clone)]
pub(super) struct Servers {
    links: LinkDefaults,
    list: Vec<Server>,
    /// The node of each.
    nodes: Vec<NodeId>,
}

impl Servers {
    pub(super) const fn new(links: LinkDefaults) -> Servers {
        Servers { links, list: Vec::new(), nodes: Vec::new() }
    }

    /// Looks whether the nodes are made of the same as before.
    pub(super) fn refresh(&mut self, nodes: &[NodeView]) -> Cluster {
        self.nodes.clear();
        self.nodes.extend(nodes.iter().map(|node| node.id));
        let same = |(server, node)| self.same(server, node);
        if self.list.len() == nodes.len() && self.list.iter().zip(nodes).all(same) {
            return Cluster::Same;
        }
        let before = std::mem::take(&mut self.list);
        for node in nodes {
            let server = self.server(node, &before);
            self.list.push(server);
        }
        Cluster::Changed
    }

    /// The servers, each with as many free devices as have room for the demand; none where that is fewer than
    /// `least`.
    pub(super) fn with_room(&mut self, demand: &Demand, least: u32, free: &FreeNodes<'_>) -> &[Server] {
        for (server, node) in self.list.iter_mut().zip(free.nodes()) {
            server.free = node.roomy_devices(demand).filter(|devices| *devices >= least).unwrap_or(0);
        }
        &self.list
    }

    /// The servers, whatever is free on them.
    pub(super) fn all(&self) -> &[Server] {
        &self.list
    }

    /// Where in the list a node is.
    pub(super) fn position(&self, node: NodeId) -> Option<usize> {
        self.nodes.iter().position(|it| *it == node)
    }

    fn same(&self, server: &Server, node: &NodeView) -> bool {
        server.devices == in_service(node)
            && server.network.to_bits() == self.network(node).to_bits()
            && server.interconnect.to_bits() == self.interconnect(node).to_bits()
            && *server.model == *model(node)
    }

    fn server(&self, node: &NodeView, before: &[Server]) -> Server {
        let alike = before.iter().chain(self.list.last()).find(|server| *server.model == *model(node));
        Server {
            free: 0,
            devices: in_service(node),
            network: self.network(node),
            interconnect: self.interconnect(node),
            model: alike.map_or_else(|| Arc::from(model(node)), |server| server.model.clone()),
        }
    }

    fn network(&self, node: &NodeView) -> f64 {
        node.links.network.unwrap_or(self.links.network).bytes_per_second()
    }

    fn interconnect(&self, node: &NodeView) -> f64 {
        node.links.interconnect.unwrap_or(self.links.interconnect).bytes_per_second()
    }
}

/// How many devices it has, without those that somebody has to look after first.
fn in_service(node: &NodeView) -> u32 {
    node.devices.iter().filter(|device| device.is_in_service()).count() as u32
}

/// The model of its devices: they are all alike in practice, and where they are not, the first one speaks for
/// them.
fn model(node: &NodeView) -> &str {
    node.devices.first().map_or("", |device| &device.model)
}
