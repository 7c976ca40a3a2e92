//! The head in the simulated cluster: its events, its effects, its timer.
//!
//! Effects are carried out in order. When the head is about to crash, only some of them are, as if it had
//! died between one and the next.

use cohabit_policy::Plan;
use cohabit_policy::interference::InterferenceContext;
use cohabit_policy::maifs::Agents;
use cohabit_scheduler_core::{Effect, Event};
use cohabit_types::{Notice, PlanRequestId, Report, Span, Time, WorkerKey};

use super::World;
use crate::failure::{FailureKind, SimFailure};
use crate::head::HeadState;
use crate::link::Side;
use crate::order_checks::{Moment, count_stops};
use crate::reference::HandledEvent;
use crate::scenario::CheckLevel;
use crate::sim_event::{HeadSimEvent, SimEvent, SimMessage};
use crate::wall_clock::ClockStep;

impl World<'_> {
    /// Passes an event to the head if it is up. The head handles it as soon as it is durable.
    pub(super) fn head_event(&mut self, event: Event) -> Result<(), SimFailure> {
        match self.settings.check_level {
            _ if !self.head.is_up() => Ok(()),
            CheckLevel::Outcomes => {
                self.learn(&event);
                self.handle_in_evaluation(event)?;
                let learned = std::mem::take(&mut self.knowledge_changed);
                if learned { self.handle_in_evaluation(Event::InterferenceUpdated) } else { Ok(()) }
            }
            CheckLevel::Everything => {
                let now = self.head_now();
                self.head.journal.add(now, event);
                self.write_journal()
            }
        }
    }

    /// Handles an event that is not journaled.
    fn handle_in_evaluation(&mut self, event: Event) -> Result<(), SimFailure> {
        let joined = joined(&event);
        self.record_head_event(&event);
        let effects = self.head.handle_unchecked(self.head_now(), event)?;
        self.accept_hello(joined, &effects);
        self.head_effects(effects)?;
        self.finish_evaluation();
        Ok(())
    }

    /// Passes samples to the daemon's hooks, as a daemon does before the core sees a report.
    fn learn(&mut self, event: &Event) {
        let Event::Report(_, Report::ColocationSamples(samples)) = event else { return };
        let knowledge = self.hooks.colocation_samples(self.now, samples, self.head.head());
        self.set_interference(knowledge);
    }

    /// Lets these agents decide, if the policy is decided by agents.
    pub(crate) fn set_agents(&mut self, agents: Box<dyn Agents>) {
        self.head.set_agents(agents);
    }

    /// Gives the policy new knowledge of interference, if there is some.
    fn set_interference(&mut self, knowledge: Option<InterferenceContext>) {
        if let Some(knowledge) = knowledge {
            self.head.set_interference(knowledge);
            self.knowledge_changed = true;
        }
    }

    /// Handles a durable event. Its effects are lost if the head is about to crash.
    pub(super) fn head_handles(&mut self, at: Time, event: Event) -> Result<(), SimFailure> {
        self.record_head_event(&event);
        self.follow_order(&event);
        let effects = self.head.handle(at, event.clone())?;
        self.check_with_reference(at, &event, &effects)?;
        self.accept_hello(joined(&event), &effects);
        let progresses = effects.iter().any(|effect| matches!(effect, Effect::Archive(_)));
        self.head_effects(effects)?;
        self.check_pause()?;
        if event == Event::Alarm && !progresses { self.check_alarm(at) } else { Ok(()) }
    }

    /// The time of the head's clock.
    pub(super) fn head_now(&self) -> Time {
        self.head.clock.read(self.now)
    }

    /// Sets the clock of the head's machine. A running head notices a jump with its next event.
    pub(super) fn step_head_clock(&mut self, step: ClockStep) {
        let jump = self.head.clock.step(self.now, step).filter(|_| self.head.is_up());
        jump.into_iter().for_each(|jump| self.head.journal.leap(jump));
    }

    fn record_head_event(&mut self, event: &Event) {
        self.counters.events += 1;
        self.record_event(event);
        self.recorder.add(self.now, || format!("head     <- {event:?}"));
    }

    /// Checks the head's handling of an event against the reference model.
    pub(super) fn check_with_reference(
        &mut self,
        at: Time,
        event: &Event,
        effects: &[Effect],
    ) -> Result<(), SimFailure> {
        let handled =
            HandledEvent { now: self.now, at, event, effects, head: self.head.head(), nodes: &self.nodes };
        let result = self.reference.check_event(&handled);
        self.invariant(result)
    }

    /// Notes that the head carries out a plan.
    fn follow_order(&mut self, event: &Event) {
        let Event::Planned(_, plan) = event else { return };
        let (stops, overdue_starts) = count_stops(plan);
        self.counters.stops += stops;
        self.counters.overdue_starts += overdue_starts;
        self.order.carried_out(self.head.view(), plan, self.moment());
    }

    /// Checks that the policy is asked often enough.
    fn check_pause(&mut self) -> Result<(), SimFailure> {
        // A head that is about to crash may have asked for a plan in vain.
        if self.head.state != HeadState::Up {
            self.order.expects_nothing();
            return Ok(());
        }
        let (now, head) = (self.moment(), self.head.head());
        let waits = || {
            let view = head.view(now.by_head);
            !view.pending.is_empty() && !view.running.is_empty()
        };
        let checked = self.order.check_pause(now, waits);
        self.invariant(checked)
    }

    fn moment(&self) -> Moment {
        Moment { at: self.now, by_head: self.head_now() }
    }

    /// Accepts the hello of a worker once its joining is durable, unless it has opened a newer link.
    fn accept_hello(&mut self, joined: Option<WorkerKey>, effects: &[Effect]) {
        let Some(key) = joined.filter(|_| self.head.carries_out_effects()) else { return };
        let is_stale = effects.iter().any(|it| matches!(it, Effect::Close(closed, _) if *closed == key));
        let is_welcome = is_stale || self.head.welcomed.contains(&key);
        if let (Some(link), false) = (self.head.sessions.get(&key), is_welcome) {
            self.send(*link, SimMessage::HelloAccepted);
        }
    }

    /// Ends an evaluation when all jobs have ended.
    fn finish_evaluation(&mut self) {
        let idle = self.clients.all_answered() && self.head.head().live_jobs().next().is_none();
        self.finished |= idle && self.settings.check_level == CheckLevel::Outcomes;
    }

    /// Carries out the effects of an event, or some of them if the head is about to crash.
    pub(super) fn head_effects(&mut self, effects: Vec<Effect>) -> Result<(), SimFailure> {
        self.record_event(&effects);
        for (attempt, speed) in self.gangs.record_orders(&effects) {
            self.hooks.gang_placed(attempt, speed);
        }
        match self.head.state {
            HeadState::Up => {
                effects.into_iter().try_for_each(|effect| self.head_effect(effect))?;
                self.set_head_alarm();
                Ok(())
            }
            HeadState::CrashDuringEffects { events, back } => {
                let carried_out = self.breaks.between(0, effects.len() as u64) as usize;
                effects.into_iter().take(carried_out).try_for_each(|effect| self.head_effect(effect))?;
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

    /// Only an alarm that archives may leave its deadline where it was: it archives a bounded number of jobs.
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
            self.queue
                .put(self.now + pause, SimEvent::Head(self.head.generation, HeadSimEvent::Alarm(setting)));
        }
    }

    fn head_effect(&mut self, effect: Effect) -> Result<(), SimFailure> {
        self.recorder.add(self.now, || format!("head     -> {effect:?}"));
        self.inject_worker_bugs(&effect);
        match effect {
            Effect::SendOrder(key, order) => {
                if let Some(link) = self.head.sessions.get(&key) {
                    self.send(*link, SimMessage::Order(self.ordered(order)));
                }
            }
            Effect::Answer(client, reply) => self.schedule_delivery(SimEvent::Reply(client, reply)),
            Effect::Publish(job, Notice::Ended(record)) => {
                self.gangs.forget(job);
                self.hooks.job_ended(&record);
            }
            Effect::Publish(_, Notice::Changed(_)) => {}
            Effect::RecordMisfit(misfit) => {
                let knowledge = self.hooks.misfit(self.now, &misfit, self.head.head());
                self.set_interference(knowledge);
            }
            // The head host has put it into the archive; nobody follows the feed of a simulation.
            Effect::Archive(_) | Effect::AddToFeed(_) | Effect::RecordUsage(_) | Effect::Account(_) => {}
            Effect::Plan(request_id) => self.plan(request_id)?,
            Effect::Close(key, _) => {
                if let Some(link) = self.head.sessions.remove(&key) {
                    self.close_link(link, Side::Head);
                    self.schedule_delivery(SimEvent::Head(self.head.generation, HeadSimEvent::Closed(key)));
                }
            }
        }
        Ok(())
    }

    /// Asks the policy for a plan of the present cluster. The plan may arrive late, or not in time.
    fn plan(&mut self, request_id: PlanRequestId) -> Result<(), SimFailure> {
        self.hooks.planning_started();
        let now = self.head_now();
        let plan = self.head.plan(self.now, now).map(|plan| self.with_planted_bug(plan));
        self.hooks.planning_finished();
        if let Some(plan) = &plan {
            self.check_plan(plan)?;
        }
        let (planning_time, limit) =
            (self.planning.span(self.settings.planning), self.settings.planning_limit);
        let (after, answer) = match plan {
            Some(plan) if planning_time <= limit => (planning_time, HeadSimEvent::Planned(request_id, plan)),
            Some(_) | None => (limit, HeadSimEvent::OutOfTime(request_id)),
        };
        self.order.asks(matches!(answer, HeadSimEvent::Planned(..)));
        self.queue.put(self.now + after, SimEvent::Head(self.head.generation, answer));
        Ok(())
    }

    fn check_plan(&mut self, plan: &Plan) -> Result<(), SimFailure> {
        match self.settings.check_level {
            CheckLevel::Everything => {
                let checked =
                    self.head.check_view().and_then(|()| self.order.check_plan(self.head.view(), plan));
                self.invariant(checked)
            }
            CheckLevel::Outcomes => Ok(()),
        }
    }
}

/// The worker that an event reports as joined.
const fn joined(event: &Event) -> Option<WorkerKey> {
    match event {
        Event::Joined(key, _) => Some(*key),
        Event::HeadStarted(_)
        | Event::Client(..)
        | Event::Lost(..)
        | Event::Report(..)
        | Event::Planned(..)
        | Event::Alarm
        | Event::InterferenceUpdated
        | Event::ClockSet(_)
        | Event::Restored(_)
        | Event::BackupRestored { .. } => None,
    }
}
