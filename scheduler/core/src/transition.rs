//! One transition of the state machine: the event's time and cause, and the effects so far.
//!
//! Everything that changes the head is a method of `Transition`, so that time, cause and effects need not be
//! passed around. `handle` begins transitions.

use std::collections::VecDeque;

use cohabit_types::{Cause, ClientRequestId, JobId, NodeId, Notice, Refusal, Reply, Time};

use crate::head::Head;
use crate::interface::{ChangedIds, Effect};
use crate::node::Node;
use crate::succession::LeftPlace;
use crate::terminal_state::TerminalState;

/// The head while it handles one event.
pub(crate) struct Transition<'a> {
    pub(crate) head: &'a mut Head,
    pub(crate) now: Time,
    pub(crate) cause: Cause,
    /// Jobs that ended in this transition and whose dependents have not been notified yet.
    pub(crate) just_ended: VecDeque<(JobId, TerminalState)>,
    /// The places of attempts that ended in this transition.
    pub(crate) left_places: Vec<LeftPlace>,
    /// What a policy has to look at again.
    pub(crate) changed_ids: ChangedIds,
    out: &'a mut Vec<Effect>,
}

impl<'a> Transition<'a> {
    pub(crate) fn new(head: &'a mut Head, now: Time, out: &'a mut Vec<Effect>) -> Transition<'a> {
        let (just_ended, left_places) = (VecDeque::new(), Vec::new());
        let (cause, changed_ids) = (Cause::Clock, ChangedIds::default());
        Transition { head, now, cause, just_ended, left_places, changed_ids, out }
    }

    pub(crate) fn effect(&mut self, effect: Effect) {
        self.out.push(effect);
    }

    pub(crate) fn answer(&mut self, client: ClientRequestId, reply: Result<Reply, Refusal>) {
        self.effect(Effect::Answer(client, reply.unwrap_or_else(Reply::Refused)));
    }

    /// Notifies watchers of the job, and of its array as a whole, that it changed.
    pub(crate) fn changed(&mut self, job: JobId) {
        self.changed_ids.jobs.insert(job);
        let revision = self.revise(job);
        self.effect(Effect::Publish(job, Notice::Changed(revision)));
        if job.index.is_some() {
            self.changed(JobId::new(job.number));
        }
    }

    /// The node, for a change that the policy will be shown.
    pub(crate) fn node_mut(&mut self, id: NodeId) -> Option<&mut Node> {
        self.changed_ids.nodes.insert(id);
        self.head.nodes.get_mut(&id)
    }

    /// Raises the revision of a job. The time in it makes revisions differ from those before a restart.
    pub(crate) fn revise(&mut self, job: JobId) -> u64 {
        let revision = self.head.volatile.revisions.entry(job).or_default();
        *revision = (*revision + 1).max(self.now.as_micros());
        *revision
    }
}
