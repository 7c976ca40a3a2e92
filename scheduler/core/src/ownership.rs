//! Keeps jobs away from nodes that serve another account alone, and from devices that serve another user now.
//!
//! Policies compare owners as numbers, which are part of a demand: where a demand of one owner does not fit,
//! that of another may.

use cohabit_policy::{NodeView, SharingUsers};
use cohabit_types::{Demand, JobId, NodeId, OwnerKey};

use crate::head::Head;
use crate::node::Node;
use crate::node_owners::NodeOwners;
use crate::submission::SubmissionState;
use crate::transition::Transition;

impl Head {
    /// What a job in memory demands, with the owner that policies compare.
    pub(crate) fn demand_with_owner(&self, id: JobId) -> Demand {
        Demand { owner: self.owner_of(&self.submissions[&id.number]), ..self.demand(id) }
    }

    /// The owner of the nodes that serve only the account of this submission, if there are any.
    pub(crate) fn owner_of(&self, submission: &SubmissionState) -> Option<OwnerKey> {
        self.volatile.owners.key(submission.account())
    }

    /// A node as policies see it.
    pub(crate) fn node_view(&self, id: NodeId, node: &Node) -> NodeView {
        let owner = node.account().and_then(|account| self.volatile.owners.key(account));
        let mut view = NodeView { owner, ..node.view(id) };
        for device in view.devices.iter_mut().filter(|it| it.sharing.users != SharingUsers::Several) {
            let submission = device.jobs.first().and_then(|job| self.submissions.get(&job.number));
            device.sharing.users = SharingUsers::One(submission.and_then(|it| self.owner_of(it)));
        }
        view
    }
}

impl Transition<'_> {
    /// A worker said whom it and its devices serve. If that gave an account another key, everything is shown
    /// anew.
    pub(crate) fn update_node_owners(&mut self) {
        let owners = NodeOwners::of(self.head.nodes.values().map(Node::served_users));
        if owners != self.head.volatile.owners {
            self.head.volatile.owners = owners;
            let all = self.head.all_ids();
            self.changed_ids.jobs.extend(all.jobs);
            self.changed_ids.nodes.extend(all.nodes);
        }
    }
}
