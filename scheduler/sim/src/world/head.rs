//! The head in the simulated cluster: its events, its effects, its alarm.
//!
//! Effects are carried out in order. When the head is about to crash, only some of them are, as if it had
//! died between one and the next.

use cohabit_scheduler_core::{Effect, Event};
use cohabit_types::{Notice, PlanRequestId, Span, Time, WorkerKey};

use super::World;
use crate::failure::{FailureKind, SimFailure};
use crate::head::HeadState;
use crate::link::Side;
use crate::reference::HandledEvent;
use crate::scenario::CheckLevel;
use crate::sim_event::{HeadSimEvent, SimEvent, SimMessage};
use crate::wall_clock::ClockStep;

impl World<'_> {
    /// Something happens to the head, if it is there: it is handled as soon as it is durable.
    pub(super) fn head_event(&mut self, event: Event) -> Result<(), SimFailure> {
        match self.settings.watch {
            _ if !self.head.is_up() => Ok(()),
            CheckLevel::Outcomes => {
                let joined = joined(&event);
                self.notice(&event);
                let effects = self.head.handle_unchecked(self.head_now(), event)?;
                self.welcome(joined, &effects);
                self.head_effects(effects)?;
                self.finish_evaluation();
                Ok(())
            }
            CheckLevel::Everything => {
                self.head.journal.add(event);
                self.write_journal()
            }
        }
    }

    /// Lets a durable event happen; the effects are lost if the head is about to crash.
    pub(super) fn head_handles(&mut self, at: Time, event: Event) -> Result<(), SimFailure> {
        self.notice(&event);
        let effects = self.head.handle(at, event.clone())?;
        self.check_with_reference(at, &event, &effects)?;
        self.welcome(joined(&event), &effects);
        self.head_effects(effects)?;
        if event == Event::Alarm { self.check_alarm(at) } else { Ok(()) }
    }

    /// What time it is for the head.
    pub(super) fn head_now(&self) -> Time {
        self.head.clock.read(self.now)
    }

    /// Somebody sets the clock of the head's machine: a head that is there notices a leap with the next
    /// event.
    pub(super) fn step_head_clock(&mut self, step: ClockStep) {
        let leapt = self.head.clock.step(self.now, step).filter(|_| self.head.is_up());
        leapt.into_iter().for_each(|leapt| self.head.journal.leap(leapt));
    }

    fn notice(&mut self, event: &Event) {
        self.tally.events += 1;
        self.record_event(event);
        self.recorder.note(self.now, || format!("head     <- {event:?}"));
    }

    /// Shows the reference what the head has made of an event.
    pub(super) fn check_with_reference(
        &mut self,
        at: Time,
        event: &Event,
        effects: &[Effect],
    ) -> Result<(), SimFailure> {
        let handled = HandledEvent { at, event, effects, head: self.head.head(), nodes: &self.nodes };
        let makes_sense = self.reference.handled(&handled);
        self.invariant(makes_sense)
    }

    /// A worker whose joining is durable may begin, unless it has opened a newer link meanwhile.
    fn welcome(&mut self, joined: Option<WorkerKey>, effects: &[Effect]) {
        let Some(key) = joined.filter(|_| self.head.carries_out()) else { return };
        let is_stale = effects.iter().any(|it| matches!(it, Effect::Close(closed, _) if *closed == key));
        if let (Some(link), false) = (self.head.sessions.get(&key), is_stale) {
            self.send(*link, SimMessage::HelloAccepted);
        }
    }

    /// An evaluation is over when all jobs have ended.
    fn finish_evaluation(&mut self) {
        let idle = self.clients.all_answered() && self.head.head().live_jobs().next().is_none();
        self.finished |= idle && self.settings.watch == CheckLevel::Outcomes;
    }

    pub(super) fn head_effects(&mut self, effects: Vec<Effect>) -> Result<(), SimFailure> {
        self.record_event(&effects);
        for (attempt, pace) in self.gangs.ordered(&effects) {
            self.shell.placed(attempt, pace);
        }
        match self.head.state {
            HeadState::Up => {
                effects.into_iter().for_each(|effect| self.head_effect(effect));
                self.set_head_alarm();
                Ok(())
            }
            HeadState::CrashDuringEffects { events, back } => {
                let carried_out = self.breaks.between(0, effects.len() as u64) as usize;
                effects.into_iter().take(carried_out).for_each(|effect| self.head_effect(effect));
                self.advance_head_crash(events, back)
            }
            HeadState::CrashAfterEvents { events, back } => self.advance_head_crash(events, back),
            HeadState::Down => Ok(()),
        }
    }

    fn advance_head_crash(&mut self, events: u32, back: Span) -> Result<(), SimFailure> {
        if events <= 1 {
            return self.crash_head(back);
        }
        self.head.state = HeadState::CrashAfterEvents { events: events - 1, back };
        self.set_head_alarm();
        Ok(())
    }

    fn check_alarm(&self, at: Time) -> Result<(), SimFailure> {
        match self.head.head().deadline() {
            Some((due_at, why)) if self.head.is_up() && due_at <= at => {
                let detail = format!("an alarm left the head's deadline where it was: {due_at:?}, {why:?}");
                Err(self.failure(FailureKind::Invariant, detail))
            }
            _ => Ok(()),
        }
    }

    fn set_head_alarm(&mut self) {
        let deadline = self.head.head().deadline().map(|(at, _)| at);
        let now = self.head_now();
        if let Some((at, setting)) = self.head.alarm.set(now, deadline) {
            let pause = at.since(now);
            self.queue.put(self.now + pause, SimEvent::Head(self.head.life, HeadSimEvent::Alarm(setting)));
        }
    }

    fn head_effect(&mut self, effect: Effect) {
        self.recorder.note(self.now, || format!("head     -> {effect:?}"));
        self.inject_worker_bugs(&effect);
        match effect {
            Effect::Tell(key, order) => {
                if let Some(link) = self.head.sessions.get(&key) {
                    self.send(*link, SimMessage::Order(order));
                }
            }
            Effect::Answer(client, reply) => self.after_travel(SimEvent::Reply(client, reply)),
            Effect::Publish(job, Notice::Ended(record)) => {
                self.gangs.forget(job);
                self.shell.ended(&record);
            }
            Effect::Publish(_, Notice::Changed(_)) => {}
            Effect::Plan(ticket) => self.plan(ticket),
            Effect::Close(key, _) => {
                if let Some(link) = self.head.sessions.remove(&key) {
                    self.hang_up(link, Side::Head);
                    self.after_travel(SimEvent::Head(self.head.life, HeadSimEvent::Closed(key)));
                }
            }
        }
    }

    /// The policy sees the cluster as it is now; its answer may come late, or not in time.
    fn plan(&mut self, ticket: PlanRequestId) {
        self.shell.asked();
        let now = self.head_now();
        let plan = self.head.plan(self.now, now);
        self.shell.answered();
        let (thinks, limit) = (self.planning.span(self.settings.planning), self.settings.planning_limit);
        let (after, answer) = match plan {
            Some(plan) if thinks <= limit => (thinks, HeadSimEvent::Planned(ticket, plan)),
            Some(_) | None => (limit, HeadSimEvent::OutOfTime(ticket)),
        };
        self.queue.put(self.now + after, SimEvent::Head(self.head.life, answer));
    }
}

/// The worker that says that it joined.
const fn joined(event: &Event) -> Option<WorkerKey> {
    match event {
        Event::Joined(key, _) => Some(*key),
        Event::Configured(_)
        | Event::Client(..)
        | Event::Lost(..)
        | Event::Report(..)
        | Event::Planned(..)
        | Event::Alarm
        | Event::Learned
        | Event::ClockSet(_) => None,
    }
}
