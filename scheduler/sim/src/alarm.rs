//! The single timer that a driver keeps for its core: the last deadline that the core asked for.

use cohabit_types::Time;

/// The timer of a driver.
#[derive(Debug, Default)]
pub(crate) struct AlarmClock {
    due_at: Option<Time>,
    setting: u64,
}

/// One setting of the timer. It is valid only while it is the latest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AlarmToken(u64);

impl AlarmClock {
    /// Sets the timer to the core's deadline and returns when to fire, if that has changed.
    pub(crate) fn set(&mut self, now: Time, deadline: Option<Time>) -> Option<(Time, AlarmToken)> {
        if deadline == self.due_at {
            return None;
        }
        self.due_at = deadline;
        self.setting += 1;
        Some((deadline?.max(now), AlarmToken(self.setting)))
    }

    /// Whether this setting is still valid. If so, the timer is cleared and has to be set again.
    pub(crate) fn rings(&mut self, setting: AlarmToken) -> bool {
        let rings = setting.0 == self.setting;
        if rings {
            self.due_at = None;
        }
        rings
    }
}
