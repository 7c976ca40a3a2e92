//! The door, and one turn of the state machine behind it: an event, its time, and the effects it has.
//!
//! Everything that changes the head does so through a turn, so that time, cause and effects need not be
//! handed around.

use std::collections::VecDeque;

use cohabit_types::{Cause, ClientRequestId, JobId, JobState, Notice, Refusal, Reply, Time};

use crate::door::{Config, Effect, Event};
use crate::head::Head;

impl Head {
    /// The one door: lets an event happen and appends what is to be done about it.
    pub fn handle(&mut self, now: Time, event: Event, out: &mut Vec<Effect>) {
        Transition::new(self, now, out).take(event);
    }
}

pub(crate) struct Transition<'a> {
    pub(crate) head: &'a mut Head,
    pub(crate) now: Time,
    pub(crate) cause: Cause,
    /// Jobs that ended in this turn, whose dependents are still to be told.
    pub(crate) just_ended: VecDeque<(JobId, JobState)>,
    out: &'a mut Vec<Effect>,
}

impl<'a> Transition<'a> {
    pub(crate) fn new(head: &'a mut Head, now: Time, out: &'a mut Vec<Effect>) -> Transition<'a> {
        Transition { head, now, cause: Cause::Clock, just_ended: VecDeque::new(), out }
    }

    /// Lets the event happen; asks for at most one plan however much it changed.
    pub(crate) fn take(mut self, event: Event) {
        match event {
            Event::Configured(config) => self.configured(config),
            Event::Client(client, by, request) => self.request(client, by, request),
            Event::Joined(key, inventory) => self.joined(key, inventory),
            Event::Lost(key, detail) => self.lost(key, &detail),
            Event::Report(key, report) => self.report(key, report),
            Event::Planned(ticket, plan) => self.planned(ticket, plan),
            Event::Alarm => self.alarm(),
            Event::Learned => self.learned(),
            Event::ClockSet(forward) => self.clock_set(forward),
        }
        self.settle_ends();
        self.ask_for_plan();
    }

    /// A start: no link of an earlier life is left, and no answer to an earlier question will come.
    fn configured(&mut self, config: Config) {
        self.head.config = config;
        self.head.started_at = self.now;
        self.head.open_ticket = None;
        self.head.plan_wanted = true;
        let linked: Vec<_> = self.head.nodes.values().filter_map(|node| node.key()).collect();
        self.cause = Cause::Restart;
        self.head.live.sight = self.head.all_changes();
        for key in linked {
            self.unreachable(key);
        }
    }

    pub(crate) fn effect(&mut self, effect: Effect) {
        self.out.push(effect);
    }

    pub(crate) fn answer(&mut self, client: ClientRequestId, reply: Result<Reply, Refusal>) {
        self.effect(Effect::Answer(client, reply.unwrap_or_else(Reply::Refused)));
    }

    /// Tells watchers of the job, and of its array as a whole, that it changed.
    pub(crate) fn changed(&mut self, job: JobId) {
        self.head.live.sight.note_job(job);
        let revision = self.revise(job);
        self.effect(Effect::Publish(job, Notice::Changed(revision)));
        if job.index.is_some() {
            self.changed(JobId::new(job.number));
        }
    }

    /// The time makes revisions differ from those of an earlier life of the head.
    pub(crate) fn revise(&mut self, job: JobId) -> u64 {
        let revision = self.head.live.revisions.entry(job).or_default();
        *revision = (*revision + 1).max(self.now.as_micros());
        *revision
    }
}
