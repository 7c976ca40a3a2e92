//! Keeps jobs away from nodes that serve another account alone, and from devices that serve another user now.
//!
//! Policies compare accounts as numbers, which are part of a demand: where a demand of one account does not
//! fit, that of another may.

use cohabit_policy::{NodeView, SharingUsers};
use cohabit_types::{AccountKey, Demand, JobId, NodeId, Time};

use crate::account_keys::AccountKeys;
use crate::head::Head;
use crate::node::Node;
use crate::submission::SubmissionState;
use crate::transition::Transition;

impl Head {
    /// What a job in memory demands, with what only policies compare.
    pub(crate) fn placeable_demand(&self, id: JobId) -> Demand {
        self.with_constraints(&self.submissions[&id.number], self.demand(id))
    }

    /// This demand of a submission, with its account and what its application says about nodes.
    pub(crate) fn with_constraints(&self, submission: &SubmissionState, demand: Demand) -> Demand {
        let account = self.account_key(submission);
        let held_for = self.held_for(&submission.spec);
        let reservations = self.reservation_terms(submission);
        self.on_nodes_of_application(&submission.spec, Demand { account, held_for, reservations, ..demand })
    }

    /// The key of the account of this submission, if policies tell it apart.
    pub(crate) fn account_key(&self, submission: &SubmissionState) -> Option<AccountKey> {
        self.volatile.accounts.key(submission.account())
    }

    /// A node as policies see it.
    pub(crate) fn node_view_at(&self, id: NodeId, node: &Node, now: Time) -> NodeView {
        NodeView { windows: self.windows(&node.name, now), ..self.node_view(id, node) }
    }

    /// The same without its reservations.
    pub(crate) fn node_view(&self, id: NodeId, node: &Node) -> NodeView {
        let owner = node.account().and_then(|account| self.volatile.accounts.key(account));
        let mut view = NodeView { owner, ..node.view(id) };
        for device in view.devices.iter_mut().filter(|it| it.sharing.users != SharingUsers::Several) {
            let submission = device.jobs.first().and_then(|job| self.submissions.get(&job.number));
            device.sharing.users = SharingUsers::One(submission.and_then(|it| self.account_key(it)));
        }
        view
    }
}

impl Transition<'_> {
    /// A worker said whom it and its devices serve. If that gave an account another key, everything is shown
    /// anew.
    pub(crate) fn update_account_keys(&mut self) {
        let accounts = AccountKeys::of(self.head.nodes.values().map(Node::served_users));
        if accounts != self.head.volatile.accounts {
            self.head.volatile.accounts = accounts;
            let all = self.head.all_ids();
            self.changed_ids.jobs.extend(all.jobs);
            self.changed_ids.nodes.extend(all.nodes);
        }
    }
}
