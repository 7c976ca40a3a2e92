//! The head in the simulated cluster: its events, its effects, its alarm.
//!
//! Effects are carried out in order. When the head is about to crash, only some of them are, as if it had
//! died between one and the next.

use cohabit_core::{Effect, Event};
use cohabit_proto::{Notice, Span, Ticket};

use super::World;
use crate::failure::{Failure, FailureKind};
use crate::happening::{AtHead, Happening, Message};
use crate::head::State;
use crate::link::Side;
use crate::scenario::Watch;

impl World<'_> {
    /// Something happens to the head, if it is there; the effects are lost if it is about to crash.
    pub(super) fn head_event(&mut self, event: Event) -> Result<(), Failure> {
        if !self.head.is_up() {
            return Ok(());
        }
        self.tally.events += 1;
        self.happened(&event);
        self.recorder.note(self.now, || format!("head     <- {event:?}"));
        let effects = self.head.handle(self.now, event)?;
        self.head_effects(effects)?;
        self.finish_evaluation();
        Ok(())
    }

    /// An evaluation is over when all jobs have ended.
    fn finish_evaluation(&mut self) {
        let idle = self.clients.all_answered() && self.head.head().live_jobs().next().is_none();
        self.finished |= idle && self.settings.watch == Watch::Outcomes;
    }

    pub(super) fn head_effects(&mut self, effects: Vec<Effect>) -> Result<(), Failure> {
        self.happened(&effects);
        for (attempt, pace) in self.gangs.ordered(&effects) {
            self.shell.placed(attempt, pace);
        }
        match self.head.state {
            State::Up => {
                effects.into_iter().for_each(|effect| self.head_effect(effect));
                self.set_head_alarm();
                Ok(())
            }
            State::Stumbling { events, back } => {
                let carried_out = self.breaks.between(0, effects.len() as u64) as usize;
                effects.into_iter().take(carried_out).for_each(|effect| self.head_effect(effect));
                self.fall(events, back)
            }
            State::Falling { events, back } => self.fall(events, back),
            State::Down => Ok(()),
        }
    }

    fn fall(&mut self, events: u32, back: Span) -> Result<(), Failure> {
        if events <= 1 {
            return self.crash_head(back);
        }
        self.head.state = State::Falling { events: events - 1, back };
        self.set_head_alarm();
        Ok(())
    }

    pub(super) fn head_alarm(&mut self) -> Result<(), Failure> {
        self.head_event(Event::Alarm)?;
        match self.head.head().deadline() {
            Some((at, why)) if self.head.is_up() && at <= self.now => {
                let detail = format!("an alarm left the head's deadline where it was: {at:?}, {why:?}");
                Err(self.failure(FailureKind::Invariant, detail))
            }
            _ => Ok(()),
        }
    }

    fn set_head_alarm(&mut self) {
        let deadline = self.head.head().deadline().map(|(at, _)| at);
        if let Some((at, setting)) = self.head.alarm.set(self.now, deadline) {
            self.agenda.put(at, Happening::Head(self.head.life, AtHead::Alarm(setting)));
        }
    }

    fn head_effect(&mut self, effect: Effect) {
        self.recorder.note(self.now, || format!("head     -> {effect:?}"));
        match effect {
            Effect::Tell(key, order) => {
                if let Some(link) = self.head.sessions.get(&key) {
                    self.send(*link, Message::Order(order));
                }
            }
            Effect::Answer(client, reply) => self.after_travel(Happening::Reply(client, reply)),
            Effect::Publish(job, Notice::Ended(record)) => {
                self.gangs.forget(job);
                self.shell.ended(&record);
            }
            Effect::Publish(_, Notice::Changed(_)) => {}
            Effect::Plan(ticket) => self.plan(ticket),
            Effect::Close(key, _) => {
                if let Some(link) = self.head.sessions.remove(&key) {
                    self.hang_up(link, Side::Head);
                    self.after_travel(Happening::Head(self.head.life, AtHead::Closed(key)));
                }
            }
        }
    }

    /// The policy sees the cluster as it is now; its answer may come late.
    fn plan(&mut self, ticket: Ticket) {
        self.shell.asked();
        let plan = self.head.plan(self.now);
        self.shell.answered();
        let thinks = self.planning.span(self.settings.planning);
        let answer = AtHead::Planned(ticket, plan);
        self.agenda.put(self.now + thinks, Happening::Head(self.head.life, answer));
    }
}
