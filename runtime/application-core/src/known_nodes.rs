//! What a process knows of the nodes of its application.

use std::collections::BTreeMap;

use cohabit_types::{RankId, Rendezvous};

use crate::ids::NodeNumber;

/// The nodes of the application, and who runs on which.
#[derive(Debug)]
pub(crate) struct KnownNodes {
    own: NodeNumber,
    addresses: BTreeMap<NodeNumber, Rendezvous>,
    /// Processes of other nodes.
    elsewhere: BTreeMap<RankId, NodeNumber>,
}

impl KnownNodes {
    pub(crate) const fn new() -> KnownNodes {
        KnownNodes { own: NodeNumber::COORDINATOR, addresses: BTreeMap::new(), elsewhere: BTreeMap::new() }
    }

    /// The coordinator has said on which node this process runs.
    pub(crate) const fn welcome(&mut self, node: NodeNumber) {
        self.own = node;
    }

    pub(crate) fn node_at(&mut self, node: NodeNumber, at: Rendezvous) {
        self.addresses.insert(node, at);
    }

    pub(crate) fn member_at(&mut self, member: RankId, node: NodeNumber) {
        self.elsewhere.insert(member, node);
    }

    pub(crate) fn member_ended(&mut self, member: RankId) {
        self.elsewhere.remove(&member);
    }

    pub(crate) const fn own(&self) -> NodeNumber {
        self.own
    }

    /// Where the processes of another node are reached.
    pub(crate) fn address_of(&self, node: NodeNumber) -> Option<&Rendezvous> {
        self.addresses.get(&node)
    }

    /// Whether processes run on several nodes.
    pub(crate) fn are_several(&self) -> bool {
        !self.addresses.is_empty()
    }

    /// The node of another process.
    pub(crate) fn of(&self, member: RankId) -> NodeNumber {
        self.elsewhere.get(&member).copied().unwrap_or(self.own)
    }
}
