//! What a process tells the coordinator about the runners of one class that it could use.
//!
//! It says so with hysteresis, so that most tasks come and go without a word to the coordinator.

use crate::limits::MAX_TASK_RUNNERS;

/// What was said last.
#[derive(Debug)]
pub(crate) struct RunnerWant {
    said: u32,
}

impl RunnerWant {
    pub(crate) const fn new() -> RunnerWant {
        RunnerWant { said: 0 }
    }

    /// Whether the coordinator believes that this process wants nothing.
    pub(crate) const fn is_nothing(&self) -> bool {
        self.said == 0
    }

    /// What to say if so many runners are needed and so many are known. A process that knows runners goes on
    /// wanting one: its next task follows without a word.
    pub(crate) fn report(&mut self, needed: u64, known: usize) -> Option<u32> {
        let needed = limited(needed);
        let least = needed.max(u32::from(known > 0));
        if needed > self.said {
            self.say(limited(u64::from(needed.next_power_of_two())))
        } else if least == 0 || least <= self.said / 4 {
            self.say(least.next_power_of_two() * u32::from(least > 0))
        } else {
            None
        }
    }

    /// What to say after the coordinator has forgotten all wants. Exactly what is needed, since there was a
    /// runner too many; also 0, since an earlier word may still be on its way.
    pub(crate) fn repeat(&mut self, needed: u64) -> Option<u32> {
        let needed = limited(needed);
        if self.said == 0 && needed == 0 {
            return None;
        }
        self.said = needed;
        Some(needed)
    }

    fn say(&mut self, runners: u32) -> Option<u32> {
        let news = runners != self.said;
        self.said = runners;
        news.then_some(runners)
    }
}

fn limited(runners: u64) -> u32 {
    runners.min(MAX_TASK_RUNNERS as u64) as u32
}
