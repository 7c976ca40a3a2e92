//! Questions to the policy and its answers, at a pace that leaves the driver time for everything else.

use std::time::{Duration, Instant};

use cohabit_actor::Context;
use cohabit_core::Event;
use cohabit_scheduler::Fact;

use super::{Driver, Message};
use crate::planner::{Memory, Planned};

/// A view that took longer to build is followed by a rest.
const LONG_VIEW: Duration = Duration::from_millis(1);

/// Whether a view may be built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// At once.
    Ready,
    /// Not before `Rested` comes.
    Resting,
}

impl Driver {
    /// Asks the policy once for all that changed meanwhile, with the view as it is now.
    pub(super) fn plan(&mut self, context: &mut Context<Driver>) {
        if self.pace == Pace::Resting {
            return;
        }
        let Some(ticket) = self.question.take() else { return };
        let begun = Instant::now();
        let view = self.parts.head.view(self.parts.clock.now());
        self.rest_after(begun.elapsed(), context);
        let planned = self.parts.planner.ask(ticket, view);
        let driver = context.address().clone();
        context.alongside(async move {
            // A driver that has stopped wants no plan.
            let _ = driver.tell(Message::Planned(planned.await)).await;
        });
    }

    /// A long queue makes long views: at most a fifth of the driver's time goes into them.
    fn rest_after(&mut self, took: Duration, context: &mut Context<Driver>) {
        if took >= LONG_VIEW {
            self.pace = Pace::Resting;
            context.send_after(took * 4, Message::Rested);
        }
    }

    pub(super) fn planned(&mut self, planned: Planned) {
        if planned.memory == Memory::Lost {
            self.tell_policy_what_lives();
        }
        self.queue(Event::Planned(planned.ticket, planned.plan), None);
    }

    /// A policy that remembers nothing hears of the jobs that live.
    pub(super) fn tell_policy_what_lives(&mut self) {
        let now = self.parts.clock.now();
        for job in self.parts.head.live_jobs() {
            self.parts.planner.observe(now, Fact::Submitted(job));
            if self.parts.head.is_placed(job) {
                self.parts.planner.observe(now, Fact::Placed(job));
            }
        }
    }
}
