//! One transition of the state machine: the event's time and cause, and the effects so far.
//!
//! Everything that changes the head is a method of `Transition`, so that time, cause and effects need not be
//! passed around. `handle` begins transitions.

use std::collections::VecDeque;

use cohabit_types::{Cause, ClientRequestId, JobId, Notice, Refusal, Reply, Time};

use crate::head::Head;
use crate::interface::Effect;
use crate::job::TerminalState;

/// The head while it handles one event.
pub(crate) struct Transition<'a> {
    pub(crate) head: &'a mut Head,
    pub(crate) now: Time,
    pub(crate) cause: Cause,
    /// Jobs that ended in this transition and whose dependents have not been notified yet.
    pub(crate) just_ended: VecDeque<(JobId, TerminalState)>,
    out: &'a mut Vec<Effect>,
}

impl<'a> Transition<'a> {
    pub(crate) fn new(head: &'a mut Head, now: Time, out: &'a mut Vec<Effect>) -> Transition<'a> {
        Transition { head, now, cause: Cause::Clock, just_ended: VecDeque::new(), out }
    }

    pub(crate) fn effect(&mut self, effect: Effect) {
        self.out.push(effect);
    }

    pub(crate) fn answer(&mut self, client: ClientRequestId, reply: Result<Reply, Refusal>) {
        self.effect(Effect::Answer(client, reply.unwrap_or_else(Reply::Refused)));
    }

    /// Notifies watchers of the job, and of its array as a whole, that it changed.
    pub(crate) fn changed(&mut self, job: JobId) {
        self.head.volatile.pending_changes.note_job(job);
        let revision = self.revise(job);
        self.effect(Effect::Publish(job, Notice::Changed(revision)));
        if job.index.is_some() {
            self.changed(JobId::new(job.number));
        }
    }

    /// Raises the revision of a job. The time in it makes revisions differ from those before a restart.
    pub(crate) fn revise(&mut self, job: JobId) -> u64 {
        let revision = self.head.volatile.revisions.entry(job).or_default();
        *revision = (*revision + 1).max(self.now.as_micros());
        *revision
    }
}
