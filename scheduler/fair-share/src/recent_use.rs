//! What somebody used lately: time by time, never sampled.

use cohabit_types::{JobSpec, Qos, Time};

use crate::decay::{Decay, MINUTE};

/// What a user holds now, and what they used, faded by its age.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct RecentUse {
    /// In thousandths of a GPU.
    pub held: u64,
    /// What of that jobs of low quality of service hold, which cost half.
    pub low: u64,
    /// What of that jobs of high quality of service hold, which cost twice as much.
    pub high: u64,
    /// What of that jobs hold that cannot be given back in time for others.
    pub fixed: u64,
    /// What those of high quality of service used up to `at` of what they may use in a week, in thousandths
    /// of a GPU times microseconds.
    pub high_used: u128,
    /// Up to `at`, in thousandths of a GPU times microseconds.
    pub used: u128,
    /// When it was last added up.
    pub at: Time,
}

/// What a job pays for what it holds, and whether it gives it back in time for others.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct UseTerms {
    /// Its quality of service.
    pub qos: Qos,
    /// Whether it cannot be given back in time for others.
    pub is_fixed: bool,
}

impl UseTerms {
    /// The terms of such a job.
    #[must_use]
    pub fn of(spec: &JobSpec) -> UseTerms {
        UseTerms { qos: spec.qos, is_fixed: !spec.can_be_given_back() }
    }
}

impl RecentUse {
    /// The same at a later time, if nothing was taken or released until then.
    #[must_use]
    pub fn at(self, now: Time, decay: &Decay) -> RecentUse {
        let (from, to) = (self.at.as_micros(), now.as_micros().max(self.at.as_micros()));
        let held = u128::from(self.charged());
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
        let high_used = self.high_used + u128::from(self.high) * u128::from(to - from);
        let high_used = high_used.saturating_sub(decay.high_refill(to - from));
        RecentUse { used, high_used, at: Time::from_micros(to), ..self }
    }

    /// Whether jobs of high quality of service may still go before others.
    #[must_use]
    pub fn may_use_high(&self, decay: &Decay) -> bool {
        self.high_used < decay.high_allowance()
    }

    /// What is charged for what is held: by its quality of service it costs more or less.
    const fn charged(&self) -> u64 {
        (self.held - self.low - self.high) + Qos::Low.cost(self.low) + Qos::High.cost(self.high)
    }

    /// A job takes so much from now on. The usage must have been brought to now.
    pub const fn take(&mut self, amount: u64, terms: UseTerms) {
        self.held += amount;
        if terms.is_fixed {
            self.fixed += amount;
        }
        match terms.qos {
            Qos::Low => self.low += amount,
            Qos::Normal => {}
            Qos::High => self.high += amount,
        }
    }

    /// A job releases so much from now on. The usage must have been brought to now.
    pub const fn release(&mut self, amount: u64, terms: UseTerms) {
        self.held = self.held.saturating_sub(amount);
        if terms.is_fixed {
            self.fixed = self.fixed.saturating_sub(amount);
        }
        match terms.qos {
            Qos::Low => self.low = self.low.saturating_sub(amount),
            Qos::Normal => {}
            Qos::High => self.high = self.high.saturating_sub(amount),
        }
    }
}

#[cfg(test)]
mod tests {
    use cohabit_types::{ShareTable, Span};

    use super::*;

    fn seconds(secs: f64) -> Time {
        Time::EPOCH + Span::from_secs_f64(secs)
    }

    #[test]
    fn use_is_held_times_time() {
        let decay = Decay::new(Span::from_secs(7 * 86_400));
        let mut usage = RecentUse::default();
        usage.take(2_500, UseTerms::default());
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
        let usage = RecentUse { held: 1_700, used: 1 << 50, at: seconds(12.5), ..RecentUse::default() };
        let at_once = usage.at(seconds(9_999.25), &decay);
        let stops = [13.0, 59.0, 60.0, 61.5, 500.0, 4_000.0, 9_960.0];
        let in_steps = stops.iter().fold(usage, |usage, stop| usage.at(seconds(*stop), &decay));
        let in_steps = in_steps.at(seconds(9_999.25), &decay);
        assert_eq!(in_steps.at, at_once.at);
        assert!(in_steps.used.abs_diff(at_once.used) < 4_000 * 8, "{in_steps:?} {at_once:?}");
    }

    #[test]
    fn low_costs_half_and_high_twice_as_much_for_so_many_hours_a_week() {
        let decay = Decay::of(&ShareTable::default());
        let used_by = |qos| {
            let mut usage = RecentUse::default();
            usage.take(1_000, UseTerms { qos, is_fixed: false });
            usage.at(seconds(30.0), &decay).used
        };
        assert_eq!(Qos::ALL.map(used_by), [15_000_000_000, 30_000_000_000, 60_000_000_000]);
        // 24 hours of a GPU in a week: after three hours of 8 GPUs it was used up, but for what came back.
        let mut usage = RecentUse::default();
        let high = UseTerms { qos: Qos::High, is_fixed: true };
        usage.take(8_000, high);
        let three_hours = usage.at(seconds(3.0 * 3_600.0), &decay);
        assert!(three_hours.may_use_high(&decay));
        let mut later = usage.at(seconds(3.1 * 3_600.0), &decay);
        assert!(!later.may_use_high(&decay));
        assert_eq!((later.held, later.high, later.fixed), (8_000, 8_000, 8_000));
        later.release(8_000, high);
        assert_eq!((later.held, later.high, later.fixed), (0, 0, 0));
        assert!(later.at(seconds(86_400.0), &decay).may_use_high(&decay));
        assert_eq!(later.at(seconds(8.0 * 86_400.0), &decay).high_used, 0);
    }

    #[test]
    fn time_that_goes_back_changes_nothing() {
        let decay = Decay::new(Span::from_secs(3_600));
        let usage = RecentUse { held: 1_000, used: 5, at: seconds(100.0), ..RecentUse::default() };
        assert_eq!(usage.at(seconds(50.0), &decay), usage);
    }
}
