//! The policy: another one decides which job starts when and where, and this one tunes the shares.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cohabit_types::{NodeId, Time};

use super::relaxed_view::RelaxedView;
use super::residents::Residents;
use super::tuning::Tuning;
use crate::interference::InterferenceContext;
use crate::maifs::Agents;
use crate::sensitivity::{KnownSensitivity, SensitivityProfiles};
use crate::{
    EndedRun, FreeNodes, PendingJob, PendingReason, Plan, Policy, Proposal, Shortage, View, ViewChange,
};

/// A policy whose jobs share cores and host memory by their sensitivity.
pub(crate) struct Tuned {
    policy: Box<dyn Policy>,
    relaxed: RelaxedView,
    residents: Residents,
    known: KnownSensitivity,
    /// Nodes that have changed since they were last shared.
    changed: BTreeSet<NodeId>,
    /// Nodes on which a job may be changed later.
    due: BTreeMap<NodeId, Time>,
}

impl Tuned {
    pub(crate) fn new(policy: Box<dyn Policy>) -> Tuned {
        Tuned {
            policy,
            relaxed: RelaxedView::default(),
            residents: Residents::default(),
            known: KnownSensitivity::default(),
            changed: BTreeSet::new(),
            due: BTreeMap::new(),
        }
    }

    fn nodes_that_are_due(&self, now: Time) -> BTreeSet<NodeId> {
        self.due.iter().filter(|(_, at)| **at <= now).map(|(node, _)| *node).collect()
    }
}

impl Policy for Tuned {
    fn learn(&mut self, view: &View, changes: &[ViewChange]) {
        let nodes = self.residents.learn(view.now, changes);
        self.known.learn(view, changes);
        let relaxed = self.relaxed.learn(view, changes, &self.residents, &nodes);
        self.policy.learn(self.relaxed.view(), &relaxed);
        self.changed.extend(nodes);
    }

    fn plan(&mut self, view: &View) -> Plan {
        self.relaxed.set_now(view.now);
        let mut nodes = self.nodes_that_are_due(view.now);
        // What may be taken from a job depends on the time, too.
        let relaxed = self.relaxed.learn(view, &[], &self.residents, &nodes);
        if !relaxed.is_empty() {
            self.policy.learn(self.relaxed.view(), &relaxed);
        }
        nodes.append(&mut self.changed);
        self.due.retain(|node, _| !nodes.contains(node));
        let Plan { actions, wake } = self.policy.plan(self.relaxed.view());
        let mut tuning = Tuning::new(view, &self.residents, &self.known);
        tuning.share(nodes, &actions);
        let mut actions = tuning.admit(actions);
        let due = std::mem::take(&mut tuning.due);
        actions.extend(tuning.changes());
        self.due.extend(due);
        let wake = wake.into_iter().chain(self.due.values().copied()).min();
        Plan { actions, wake }
    }

    fn explain_pending(&mut self, view: &View) -> Vec<PendingReason> {
        self.relaxed.set_now(view.now);
        self.policy.explain_pending(self.relaxed.view())
    }

    /// What is free is what no job holds by rights: shares of cores and memory would be made smaller.
    fn dry_run_on(&mut self, view: &View, job: &PendingJob, _: &FreeNodes<'_>) -> Result<Proposal, Shortage> {
        self.relaxed.set_now(view.now);
        self.policy.dry_run(self.relaxed.view(), job)
    }

    fn recall(&mut self, ended: &[EndedRun]) {
        self.policy.recall(ended);
    }

    fn set_interference(&mut self, context: &InterferenceContext) {
        self.policy.set_interference(context);
    }

    fn set_sensitivity(&mut self, profiles: &Arc<SensitivityProfiles>) {
        self.known.profiles = Arc::clone(profiles);
        self.policy.set_sensitivity(profiles);
    }

    fn set_agents(&mut self, agents: Box<dyn Agents>) {
        self.policy.set_agents(agents);
    }
}
