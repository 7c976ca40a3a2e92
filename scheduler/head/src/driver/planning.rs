//! Questions to the policy and its answers: for the head, plans; for people, what their jobs have to expect.

use std::time::{Duration, Instant};

use cohabit_actor::{Context, ReplyTo};
use cohabit_policy::DryRunResult;
use cohabit_scheduler_core::{DryRunJob, Event};
use cohabit_types::{DryRun, JobSpec, Principal, Refusal, RefusalCode, Submit};

use super::{Driver, Message, Question};
use crate::planner::{Forecasts, Planned, fall_back};

/// What the policy said of its jobs is repeated for this long.
const FORECAST_TTL: Duration = Duration::from_millis(500);

/// What the policy last said of its jobs.
#[derive(Default)]
pub(super) struct Outlook {
    /// When it did.
    told_at: Option<Instant>,
    /// Who waits for it to say more.
    waiting: Vec<Question>,
}

/// What the policy said of a job that is only thought of.
#[derive(Debug)]
pub(crate) struct Considered {
    imagined: DryRunJob,
    thought: Result<DryRunResult, String>,
    reply_to: ReplyTo<Result<Box<DryRun>, Refusal>>,
}

impl Driver {
    /// Asks the policy once for all that changed meanwhile.
    pub(super) fn plan(&mut self, context: &mut Context<Driver>) {
        let Some(ticket) = self.wanted_plan.take() else { return };
        let changes = self.parts.head.changes();
        self.parts.planner.change(changes);
        let planned = self.parts.planner.ask(ticket, self.parts.clock.now());
        let driver = context.address().clone();
        context.spawn_task(async move {
            // A driver that has stopped wants no plan.
            let _ = driver.tell(Message::Planned(planned.await)).await;
        });
    }

    pub(super) fn planned(&mut self, Planned { ticket, plan }: Planned) {
        let cheap =
            |trouble: String| fall_back(ticket, &self.parts.head.view(self.parts.clock.now()), &trouble);
        let plan = plan.unwrap_or_else(cheap);
        self.queue(Event::Planned(ticket, plan), None);
    }

    /// Answers at once what the head knows itself; what jobs have to expect is asked of the policy first,
    /// unless it has just said so and nothing has come since of which it did not.
    pub(super) fn question(&mut self, question: Question, context: &mut Context<Driver>) {
        let head = &self.parts.head;
        let recent = self.outlook.told_at.is_some_and(|at| at.elapsed() < FORECAST_TTL);
        let fresh = recent && head.has_fresh_forecasts();
        if !question.needs_forecasts() || fresh || !(head.has_pending() || head.has_colocated_jobs()) {
            return self.answer(question);
        }
        self.outlook.waiting.push(question);
        if self.outlook.waiting.len() > 1 {
            return;
        }
        let changes = self.parts.head.changes();
        self.parts.planner.change(changes);
        let outlook = self.parts.planner.outlook(self.parts.clock.now());
        let driver = context.address().clone();
        context.spawn_task(async move {
            // A driver that has stopped answers nobody.
            let _ = driver.tell(Message::Outlook(outlook.await)).await;
        });
    }

    /// A policy that could not say is asked again by the next who wants to know.
    pub(super) fn forecasts_arrived(&mut self, forecasts: Option<Forecasts>) {
        if let Some(Forecasts { expected, company }) = forecasts {
            self.parts.head.expect(expected);
            self.parts.head.set_colocation_slowdowns(company);
            self.outlook.told_at = Some(Instant::now());
        }
        for question in std::mem::take(&mut self.outlook.waiting) {
            self.answer(question);
        }
    }

    /// Asks the policy where a job would go that nobody has submitted.
    pub(super) fn dry_run(
        &mut self,
        by: &Principal,
        spec: JobSpec,
        reply_to: ReplyTo<Result<Box<DryRun>, Refusal>>,
        context: &mut Context<Driver>,
    ) {
        let now = self.parts.clock.now();
        let mut submit = Submit { spec, idempotency_key: None, estimate: None };
        self.expect(&by.user, &mut submit);
        let imagined = match self.parts.head.prepare_dry_run(now, by, submit) {
            Ok(imagined) => imagined,
            Err(refusal) => return reply_to.send(Err(refusal)),
        };
        let changes = self.parts.head.changes();
        self.parts.planner.change(changes);
        let thought = self.parts.planner.consider(now, imagined.job.clone());
        let driver = context.address().clone();
        context.spawn_task(async move {
            let considered = Considered { imagined, thought: thought.await, reply_to };
            // A driver that has stopped answers nobody.
            let _ = driver.tell(Message::Considered(Box::new(considered))).await;
        });
    }

    pub(super) fn considered(&self, considered: Considered) {
        let Considered { imagined, thought, reply_to } = considered;
        reply_to.send(match thought {
            Ok(thought) => Ok(Box::new(self.parts.head.considered(&imagined, &thought))),
            Err(trouble) => {
                let why = format!("the policy did not say where the job would go: {trouble}");
                Err(Refusal::new(RefusalCode::Unavailable, why))
            }
        });
    }
}
