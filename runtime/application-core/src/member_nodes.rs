//! Where the other processes are, as one process knows it.

use std::collections::BTreeSet;

use cohabit_types::{RankId, Rendezvous};

use crate::frames::ToCoordinator;
use crate::ids::{NodeNumber, ObjectId};
use crate::member::Member;
use crate::member_effect::MemberEffect;
use crate::needed_bytes::NeededBytes;
use crate::node_frames::FromStore;
use crate::object_value::ObjectValue;

/// How a process is reached from another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberPlace {
    /// It runs on the same node.
    Here,
    /// It runs on another node, whose processes are reached there.
    At(Rendezvous),
    /// It runs on another node, which cannot be reached yet: try again later.
    Unknown,
}

impl Member {
    /// The node on which this process runs: the coordinator's, as long as nothing else was said.
    #[must_use]
    pub const fn node(&self) -> NodeNumber {
        self.nodes.own()
    }

    /// Where a process is reached that the coordinator has named, or the coordinator itself.
    #[must_use]
    pub fn place_of(&self, member: RankId) -> MemberPlace {
        let node = if member == self.coordinator { NodeNumber::COORDINATOR } else { self.nodes.of(member) };
        if node == self.nodes.own() {
            return MemberPlace::Here;
        }
        self.address_of(node).cloned().map_or(MemberPlace::Unknown, MemberPlace::At)
    }

    /// Where the processes of another node are reached, among them its store.
    #[must_use]
    pub fn address_of(&self, node: NodeNumber) -> Option<&Rendezvous> {
        self.nodes.address_of(node)
    }

    /// The store in this process has something to say to the coordinator.
    pub fn from_store(&self, frame: FromStore, effects: &mut Vec<MemberEffect>) {
        effects.push(MemberEffect::ToCoordinator(ToCoordinator::Store(frame)));
    }

    /// Where the stored objects among these are; nothing as long as this process knows of one node alone.
    pub(crate) fn spread(&self, needs: &[ObjectId]) -> NeededBytes {
        let mut spread = NeededBytes::default();
        if needs.is_empty() || !self.nodes.are_several() {
            return spread;
        }
        let mut seen = BTreeSet::new();
        for object in needs {
            if let Some(ObjectValue::Stored(stored)) = self.references.value(*object)
                && seen.insert(stored.object)
            {
                spread.add(stored.home, stored.bytes);
            }
        }
        spread
    }
}
