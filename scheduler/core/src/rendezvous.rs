//! Where the ranks of an attempt find each other: at a port of the node of rank 0.
//!
//! Each worker says in its inventory which ports it keeps for that, so a start needs no round trip. Only
//! rank 0 finds out, when it starts, that another program has the port: then the attempt is repeated with
//! another one.

use cohabit_types::{JobId, NodeId, RankRun, Rendezvous};

use crate::head::Head;
use crate::job::RendezvousEndpoint;
use crate::node::Node;
use crate::transition::Transition;

impl Head {
    /// A port that no other attempt uses, as long as there are enough. Successive attempts get different
    /// ports, because the sockets of the last one may linger.
    pub(crate) fn choose_rendezvous_endpoint(
        &self,
        id: JobId,
        attempt: u32,
        runs: &[(NodeId, Vec<RankRun>)],
    ) -> Option<RendezvousEndpoint> {
        let (host, _) = runs.iter().find(|(_, runs)| runs.iter().any(|run| run.rank == 0))?;
        let node = self.nodes.get(host)?;
        let ports = &node.rendezvous_ports;
        let begin = (id.number + u64::from(attempt)) % (ports.len() as u64).max(1);
        let (before, after) = ports.split_at(begin as usize);
        let used = self.rendezvous_ports_in_use(*host, node);
        let uses = |port: &u16| {
            let attempts = used.iter().filter(|used| *used == port).count();
            (node.occupied_ports.contains(port), attempts)
        };
        let ports = || after.iter().chain(before).copied();
        let unused = ports().find(|port| uses(port) == (false, 0));
        unused.or_else(|| ports().min_by_key(uses)).map(|port| (*host, port))
    }

    /// The endpoint as orders name it.
    pub(crate) fn rendezvous(&self, endpoint: Option<RendezvousEndpoint>) -> Option<Rendezvous> {
        let (host, port) = endpoint?;
        Some(Rendezvous { address: self.nodes[&host].address.clone(), port })
    }

    /// The ports of the node that attempts use, or will use that were ordered in advance.
    fn rendezvous_ports_in_use(&self, host: NodeId, node: &Node) -> Vec<u16> {
        let live = node.jobs.iter().filter_map(|job| self.jobs[job].live_attempt()?.rendezvous);
        let followers = self.volatile.followers.values();
        let prefetched = followers.filter_map(|job| self.prefetched(*job)?.attempt.rendezvous);
        let endpoints = live.chain(prefetched);
        endpoints.filter(|(node, _)| *node == host).map(|(_, port)| port).collect()
    }
}

impl Transition<'_> {
    /// Another program has the port: it is chosen last until the worker joins again.
    pub(crate) fn mark_port_taken(&mut self, id: JobId, port: u16) {
        let endpoint = self.head.jobs[&id].live_attempt().and_then(|attempt| attempt.rendezvous);
        if let Some(node) = endpoint.and_then(|(host, _)| self.head.nodes.get_mut(&host)) {
            node.occupied_ports.insert(port);
        }
    }
}
