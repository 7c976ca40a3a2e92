//! The alarm clock of the head: one timer, set to the head's next deadline.

use cohabit_actor::Context;
use cohabit_scheduler_core::Event;
use cohabit_types::{Span, Time};

use super::{Driver, Message};

/// A timer that ends early is set again: after so long it is seen at the latest that the machine's clock was
/// set forward, and that the deadline has come by it.
const LONGEST_WAIT: Span = Span::from_secs(60);

impl Driver {
    /// Sets the alarm to the head's deadline.
    pub(super) fn arm(&mut self, context: &mut Context<Driver>) {
        let deadline = self.parts.head.deadline().map(|(at, _)| at);
        if self.alarm.as_ref().map(|(at, _)| *at) == deadline {
            return;
        }
        self.disarm();
        self.alarm = deadline.map(|at| {
            let left = at.since(self.parts.clock.now()).min(LONGEST_WAIT);
            (at, context.send_after(left.into(), Message::Alarm(at)))
        });
    }

    /// The next [`Driver::arm`] sets the alarm anew, for the same deadline too.
    pub(super) fn disarm(&mut self) {
        if let Some((_, timer)) = self.alarm.take() {
            timer.cancel();
        }
    }

    /// An alarm that was set anew meanwhile, or rings too early because the clock was set back, is none.
    pub(super) fn alarm_fired(&mut self, set_for: Time) {
        if self.alarm.take_if(|(at, _)| *at == set_for).is_some() && set_for <= self.parts.clock.now() {
            self.queue(Event::Alarm, None);
        }
    }
}
