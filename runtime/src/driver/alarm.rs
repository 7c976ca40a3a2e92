//! The alarm clock of the head: one timer, set to the head's next deadline.

use cohabit_actor::Context;
use cohabit_core::Event;
use cohabit_proto::{Span, Time};

use super::{Driver, Message};

/// Timers refuse spans of many years; one that ends early is set again.
const LONGEST_WAIT: Span = Span::from_secs(86_400);

impl Driver {
    /// Sets the alarm to the head's deadline.
    pub(super) fn arm(&mut self, context: &mut Context<Driver>) {
        let deadline = self.parts.head.deadline().map(|(at, _)| at);
        if self.alarm.as_ref().map(|(at, _)| *at) == deadline {
            return;
        }
        if let Some((_, timer)) = self.alarm.take() {
            timer.cancel();
        }
        self.alarm = deadline.map(|at| {
            let left = at.since(self.parts.clock.now()).min(LONGEST_WAIT);
            (at, context.send_after(left.into(), Message::Alarm(at)))
        });
    }

    /// An alarm that was set anew meanwhile, or rings too early because the clock was set back, is none.
    pub(super) fn alarm_rang(&mut self, set_for: Time) {
        if self.alarm.take_if(|(at, _)| *at == set_for).is_some() && set_for <= self.parts.clock.now() {
            self.queue(Event::Alarm, None);
        }
    }
}
