//! Questions to the policy and its answers: for the head, plans; for people, what their jobs have to expect.

use std::time::{Duration, Instant};

use cohabit_actor::{Context, Reply as ReplyTo};
use cohabit_core::Event;
use cohabit_proto::{Answer, By, Query};
use cohabit_scheduler::Expectation;

use super::{Driver, Message};
use crate::planner::{Planned, fall_back};

/// What the policy said of its jobs is repeated for this long.
const OUTLOOK_LASTS: Duration = Duration::from_millis(500);

/// A question of a person that the policy is to answer first.
pub(super) struct Curious {
    by: By,
    query: Query,
    reply_to: ReplyTo<Answer>,
}

/// What the policy last said of its jobs.
#[derive(Default)]
pub(super) struct Outlook {
    /// When it did.
    told_at: Option<Instant>,
    /// Who waits for it to say more.
    waiting: Vec<Curious>,
}

impl Driver {
    /// Asks the policy once for all that changed meanwhile.
    pub(super) fn plan(&mut self, context: &mut Context<Driver>) {
        let Some(ticket) = self.question.take() else { return };
        let changes = self.parts.head.changes();
        self.parts.planner.change(changes);
        let planned = self.parts.planner.ask(ticket, self.parts.clock.now());
        let driver = context.address().clone();
        context.alongside(async move {
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
    /// unless it has just said so.
    pub(super) fn query(
        &mut self,
        by: By,
        query: Query,
        reply_to: ReplyTo<Answer>,
        context: &mut Context<Driver>,
    ) {
        let looks_ahead = matches!(query, Query::List(_) | Query::Show(_) | Query::Explain(_));
        let fresh = self.outlook.told_at.is_some_and(|at| at.elapsed() < OUTLOOK_LASTS);
        if !looks_ahead || fresh || !self.parts.head.has_pending() {
            return reply_to.send(self.answer(&by, &query));
        }
        self.outlook.waiting.push(Curious { by, query, reply_to });
        if self.outlook.waiting.len() > 1 {
            return;
        }
        let changes = self.parts.head.changes();
        self.parts.planner.change(changes);
        let outlook = self.parts.planner.outlook(self.parts.clock.now());
        let driver = context.address().clone();
        context.alongside(async move {
            // A driver that has stopped answers nobody.
            let _ = driver.tell(Message::Outlook(outlook.await)).await;
        });
    }

    /// A policy that could not say is asked again by the next who wants to know.
    pub(super) fn looked_ahead(&mut self, expected: Vec<Expectation>) {
        if !expected.is_empty() {
            self.parts.head.expect(expected);
            self.outlook.told_at = Some(Instant::now());
        }
        for Curious { by, query, reply_to } in std::mem::take(&mut self.outlook.waiting) {
            reply_to.send(self.answer(&by, &query));
        }
    }
}
