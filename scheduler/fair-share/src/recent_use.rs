//! What somebody used lately: time by time, never sampled.

use cohabit_types::Time;

use crate::decay::{Decay, MINUTE};

/// What a user holds now, and what they used, faded by its age.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct RecentUse {
    /// In thousandths of a GPU.
    pub held: u64,
    /// Up to `at`, in thousandths of a GPU times microseconds.
    pub used: u128,
    /// When it was last added up.
    pub at: Time,
}

impl RecentUse {
    /// The same at a later time, if nothing was taken or released until then.
    #[must_use]
    pub fn at(self, now: Time, decay: &Decay) -> RecentUse {
        let (from, to) = (self.at.as_micros(), now.as_micros().max(self.at.as_micros()));
        let held = u128::from(self.held);
        let minutes = to / MINUTE - from / MINUTE;
        let used = if minutes == 0 {
            self.used + held * u128::from(to - from)
        } else {
            // The rest of the first minute, whole minutes, and the beginning of the last one.
            let first = self.used + held * u128::from(MINUTE - from % MINUTE);
            let faded = decay.after(1, first, 0);
            let whole = decay.after(minutes - 1, faded, held * u128::from(MINUTE));
            whole + held * u128::from(to % MINUTE)
        };
        RecentUse { held: self.held, used, at: Time::from_micros(to) }
    }

    /// Takes so much from now on. The usage must have been brought to now.
    pub const fn take(&mut self, amount: u64) {
        self.held += amount;
    }

    /// Releases so much from now on. The usage must have been brought to now.
    pub const fn release(&mut self, amount: u64) {
        self.held = self.held.saturating_sub(amount);
    }
}

#[cfg(test)]
mod tests {
    use cohabit_types::Span;

    use super::*;

    fn seconds(secs: f64) -> Time {
        Time::EPOCH + Span::from_secs_f64(secs)
    }

    #[test]
    fn use_is_held_times_time() {
        let decay = Decay::new(Span::from_secs(7 * 86_400));
        let mut usage = RecentUse::default();
        usage.take(2_500);
        let half_a_minute = usage.at(seconds(30.0), &decay);
        assert_eq!(half_a_minute.used, 2_500 * 30_000_000);
        // One day of a week's half-life: held * (1 - 2^(-1/7)) * 7 d / ln 2.
        let day = usage.at(seconds(86_400.0), &decay).used as f64;
        let expected = 2_500.0 * (1.0 - 0.5_f64.powf(1.0 / 7.0)) * 7.0 * 86_400e6 / std::f64::consts::LN_2;
        assert!((day / expected - 1.0).abs() < 1e-4, "{day} {expected}");
    }

    #[test]
    fn it_does_not_matter_when_it_is_added_up() {
        let decay = Decay::new(Span::from_secs(3_600));
        let usage = RecentUse { held: 1_700, used: 1 << 50, at: seconds(12.5) };
        let at_once = usage.at(seconds(9_999.25), &decay);
        let stops = [13.0, 59.0, 60.0, 61.5, 500.0, 4_000.0, 9_960.0];
        let in_steps = stops.iter().fold(usage, |usage, stop| usage.at(seconds(*stop), &decay));
        let in_steps = in_steps.at(seconds(9_999.25), &decay);
        assert_eq!(in_steps.at, at_once.at);
        assert!(in_steps.used.abs_diff(at_once.used) < 4_000 * 8, "{in_steps:?} {at_once:?}");
    }

    #[test]
    fn time_that_goes_back_changes_nothing() {
        let decay = Decay::new(Span::from_secs(3_600));
        let usage = RecentUse { held: 1_000, used: 5, at: seconds(100.0) };
        assert_eq!(usage.at(seconds(50.0), &decay), usage);
    }
}
