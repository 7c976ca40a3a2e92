//! The cluster as the tuned policy sees it: what jobs hold beyond their rights counts as free, because it is
//! taken from them as soon as somebody needs it to start.

use std::collections::BTreeSet;

use cohabit_types::{NodeId, Time};

use super::residents::Residents;
use crate::{NodeView, View, ViewChange};

/// A view in which more is free.
#[derive(Debug, Default, Clone)]
pub(super) struct RelaxedView(View);

impl RelaxedView {
    pub(super) const fn view(&self) -> &View {
        &self.0
    }

    pub(super) const fn set_now(&mut self, now: Time) {
        self.0.now = now;
    }

    /// Follows the changes, of which `nodes` are concerned. Returns the changes of this view.
    pub(super) fn learn(
        &mut self,
        view: &View,
        changes: &[ViewChange],
        residents: &Residents,
        nodes: &BTreeSet<NodeId>,
    ) -> Vec<ViewChange> {
        let stays = |change: &&ViewChange| !matches!(change, ViewChange::Node(_));
        let mut relaxed: Vec<ViewChange> = changes.iter().filter(stays).cloned().collect();
        self.0.now = view.now;
        // Before the nodes: one that went and came back as it was is not here any more.
        self.0.apply(&relaxed);
        let of_nodes = view.nodes.iter().filter(|node| nodes.contains(&node.id));
        let of_nodes = of_nodes.map(|node| relaxed_node(node, view, residents));
        let of_nodes: Vec<_> = of_nodes.filter(|node| !self.has(node)).map(ViewChange::Node).collect();
        self.0.apply(&of_nodes);
        relaxed.extend(of_nodes);
        relaxed
    }

    /// Whether the view has this very node.
    fn has(&self, node: &NodeView) -> bool {
        let place = self.0.nodes.binary_search_by_key(&node.ordinal, |it| it.ordinal);
        place.is_ok_and(|place| self.0.nodes[place] == *node)
    }
}

fn relaxed_node(node: &NodeView, view: &View, residents: &Residents) -> NodeView {
    let free = node.host_free().plus(residents.reclaimable(node, view)).at_most(node.host());
    NodeView { cpus_free: free.cpus, memory_free: free.memory, ..node.clone() }
}
