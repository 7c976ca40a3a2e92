//! How use fades: by half in each half-life, in steps of a minute.
//!
//! Parts are fixed-point numbers with 64 bits behind the point, made from integers alone.

use cohabit_types::{ShareTable, Span};

/// An hour of a GPU, in thousandths of a GPU times microseconds.
const HOUR: u128 = 1_000 * 3_600_000_000;
/// In microseconds.
const WEEK: u128 = 7 * 86_400_000_000;

/// Use fades at the end of each minute.
pub(crate) const MINUTE: u64 = 60_000_000;

/// The largest number of minutes is below two to this power: time has 64 bits of microseconds.
const POWERS: usize = 40;

/// How what was used stops counting: a half-life, prepared for any number of minutes, and what may be used
/// of high quality of service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decay {
    /// For each power of two of minutes: the part of earlier use that is left after them.
    left: [u64; POWERS],
    /// The same for use of one unit in each of these minutes: what is left of their sum, as units and a part.
    gained: [(u64, u64); POWERS],
    /// What jobs of high quality of service of a user may hold in a week, in hours of a GPU.
    high_gpu_hours: u64,
}

impl Decay {
    /// How use counts by this table.
    #[must_use]
    pub fn of(table: &ShareTable) -> Decay {
        Decay { high_gpu_hours: table.user.high_gpu_hours.into(), ..Decay::new(table.half_life) }
    }

    /// Use that halves in this time, at least a minute.
    #[must_use]
    pub fn new(half_life: Span) -> Decay {
        let minutes = (half_life.as_micros() / MINUTE).max(1);
        let mut left = [0; POWERS];
        let mut gained = [(0, 0); POWERS];
        left[0] = minute_part(minutes);
        gained[0] = (0, left[0]);
        for power in 1..POWERS {
            let before = left[power - 1];
            left[power] = times_part(u128::from(before), before) as u64;
            // The first half fades while the second is used.
            let (units, part) = gained[power - 1];
            let whole = (u128::from(units) << 64) | u128::from(part);
            let sum = whole + times_part(whole, before);
            gained[power] = ((sum >> 64) as u64, sum as u64);
        }
        Decay { left, gained, high_gpu_hours: 0 }
    }

    /// What a user of high quality of service may have used at once, in thousandths of a GPU times
    /// microseconds.
    pub(crate) fn high_allowance(&self) -> u128 {
        u128::from(self.high_gpu_hours) * HOUR
    }

    /// What comes back of it in so many microseconds.
    pub(crate) fn high_refill(&self, micros: u64) -> u128 {
        self.high_allowance() * u128::from(micros) / WEEK
    }

    /// What becomes of earlier use in so many whole minutes, in each of which `each` is used.
    #[must_use]
    pub fn after(&self, minutes: u64, mut used: u128, each: u128) -> u128 {
        for power in (0..POWERS).filter(|power| minutes >> power & 1 == 1) {
            let (units, part) = self.gained[power];
            used = times_part(used, self.left[power]) + each * u128::from(units) + times_part(each, part);
        }
        used
    }
}

/// This part of an amount, rounded down.
const fn times_part(amount: u128, part: u64) -> u128 {
    (amount >> 64) * part as u128 + (((amount & u64::MAX as u128) * part as u128) >> 64)
}

/// The largest part of which as many powers as there are minutes in a half-life leave at most a half.
fn minute_part(minutes: u64) -> u64 {
    let halves = |part: u64| power_of_part(part, minutes) <= 1 << 63;
    let (mut low, mut high) = (0, u64::MAX);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if halves(middle) { low = middle } else { high = middle - 1 }
    }
    low
}

/// A part multiplied by itself so often, rounded down.
fn power_of_part(part: u64, exponent: u64) -> u64 {
    let (mut power, mut base, mut rest) = (u64::MAX, part, exponent);
    while rest > 0 {
        if rest & 1 == 1 {
            power = times_part(u128::from(power), base) as u64;
        }
        base = times_part(u128::from(base), base) as u64;
        rest >>= 1;
    }
    power
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF_LIFE: Span = Span::from_secs(7 * 86_400);

    fn is_near(one: u128, other: f64) -> bool {
        (one as f64 - other).abs() <= 1e-9 * other + 1e4
    }

    #[test]
    fn a_half_is_left_after_a_half_life() {
        for half_life in
            [Span::from_secs(60), Span::from_secs(3_600), HALF_LIFE, Span::from_secs(365 * 86_400)]
        {
            let decay = Decay::new(half_life);
            let minutes = half_life.as_micros() / MINUTE;
            let used = 1_u128 << 60;
            assert!(is_near(decay.after(minutes, used, 0), (1_u64 << 59) as f64));
            assert!(is_near(decay.after(3 * minutes, used, 0), (1_u64 << 57) as f64));
        }
    }

    #[test]
    fn use_at_a_constant_rate_tends_to_the_half_life_over_the_logarithm_of_two() {
        // The integral of exp(-ln 2 * t / 7 d) over all t.
        let each = 8_000 * u128::from(MINUTE);
        let forever = Decay::new(HALF_LIFE).after(100 * 10_080, 0, each);
        let expected = 8_000.0 * HALF_LIFE.as_micros() as f64 / std::f64::consts::LN_2;
        assert!((forever as f64 / expected - 1.0).abs() < 1e-4, "{forever} {expected}");
    }

    #[test]
    fn minutes_may_be_taken_together() {
        let decay = Decay::new(Span::from_secs(86_400));
        let each = 3_500 * u128::from(MINUTE);
        let mut one_by_one = 1_u128 << 62;
        for _ in 0..1_000 {
            one_by_one = decay.after(1, one_by_one, each);
        }
        let together = decay.after(1_000, 1 << 62, each);
        assert!(one_by_one.abs_diff(together) < 4_000, "{one_by_one} {together}");
    }
}
