//! The one alarm that a driver keeps for its core: the last deadline that the core named.

use cohabit_types::Time;

/// An alarm clock.
#[derive(Debug, Default)]
pub(crate) struct AlarmClock {
    due_at: Option<Time>,
    setting: u64,
}

/// A setting of an alarm clock; rings only while it is the latest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AlarmToken(u64);

impl AlarmClock {
    /// Sets it to the core's deadline; answers when it has to ring, if that has changed.
    pub(crate) fn set(&mut self, now: Time, deadline: Option<Time>) -> Option<(Time, AlarmToken)> {
        if deadline == self.due_at {
            return None;
        }
        self.due_at = deadline;
        self.setting += 1;
        Some((deadline?.max(now), AlarmToken(self.setting)))
    }

    /// Whether it rings; it has to be set again then.
    pub(crate) fn rings(&mut self, setting: AlarmToken) -> bool {
        let rings = setting.0 == self.setting;
        if rings {
            self.due_at = None;
        }
        rings
    }
}
