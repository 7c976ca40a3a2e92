//! Where the ranks of an attempt meet: at a port of the node on which rank 0 lies.
//!
//! Each worker says which ports it keeps for that, so no question has to be asked before an attempt starts. A
//! port turns out to be taken only when rank 0 is about to start: then the attempt is tried again, at
//! another.

use cohabit_types::{JobId, NodeId, RankRun, Rendezvous};

use crate::head::Head;
use crate::node::Node;
use crate::turn::Transition;

/// The node of rank 0, and its port.
pub(crate) type RendezvousEndpoint = (NodeId, u16);

impl Head {
    /// A port at which no other attempt meets, as long as there are enough of them. Attempts that follow each
    /// other get different ones, for the last may still linger.
    pub(crate) fn meeting_point(
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
            let meetings = used.iter().filter(|used| *used == port).count();
            (node.taken_ports.contains(port), meetings)
        };
        let ports = || after.iter().chain(before).copied();
        let unused = ports().find(|port| uses(port) == (false, 0));
        unused.or_else(|| ports().min_by_key(uses)).map(|port| (*host, port))
    }

    /// What the orders say of it.
    pub(crate) fn rendezvous(&self, meeting_point: Option<RendezvousEndpoint>) -> Option<Rendezvous> {
        let (host, port) = meeting_point?;
        Some(Rendezvous { address: self.nodes[&host].address.clone(), port })
    }

    /// The ports of the node at which live attempts meet.
    fn rendezvous_ports_in_use(&self, host: NodeId, node: &Node) -> Vec<u16> {
        let points = node.jobs.iter().filter_map(|job| self.jobs[job].live_attempt()?.meeting_point);
        points.filter(|(node, _)| *node == host).map(|(_, port)| port).collect()
    }
}

impl Transition<'_> {
    /// Another program has the port. It is the last to be given, until the worker joins anew.
    pub(crate) fn mark_port_taken(&mut self, id: JobId, port: u16) {
        let point = self.head.jobs[&id].live_attempt().and_then(|attempt| attempt.meeting_point);
        if let Some(node) = point.and_then(|(host, _)| self.head.nodes.get_mut(&host)) {
            node.taken_ports.insert(port);
        }
    }
}
