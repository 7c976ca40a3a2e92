//! The head's alarm: one timer, set to the head's next deadline.

use cohabit_actor::Context;
use cohabit_scheduler_core::Event;
use cohabit_types::{Span, Time};

use super::message::Message;
use super::state::Driver;

/// The longest timer. Timers do not follow the machine's wall clock, so a clock that is set forward past a
/// deadline is noticed after this time at the latest.
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

    /// Ignores an alarm that was replaced meanwhile, or that fires before its deadline because the wait was
    /// shortened or the clock was set back.
    pub(super) fn alarm_fired(&mut self, set_for: Time) {
        if self.alarm.take_if(|(at, _)| *at == set_for).is_some() && set_for <= self.parts.clock.now() {
            self.queue(Event::Alarm, None);
        }
    }
}
