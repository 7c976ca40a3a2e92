//! The values that a parameter may take.

use cohabit_client::types::{Array, counted};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng as _;
use serde_json::Value;

use super::values::rounded;

/// What a grid with such a range lacks.
const NO_COUNT: &str = "a grid needs to know how many numbers to take of the range: write log:1e-5..1e-1:5 for \
     five, or draw some with --random";

/// The values that a parameter may take.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ParameterDomain {
    /// These.
    Values(Vec<Value>),
    /// Whole numbers from the first to the last, so far apart.
    Whole { first: i64, last: i64, step: u64 },
    /// Numbers between both ends, evenly spaced or evenly spread; how many of them a grid has.
    Linear { first: f64, last: f64, count: Option<u64> },
    /// The same for the logarithms of the numbers.
    Log { first: f64, last: f64, count: Option<u64> },
}

impl ParameterDomain {
    /// Whole numbers.
    pub(crate) fn whole(first: i64, last: i64, step: u64) -> Result<ParameterDomain, String> {
        match step {
            0 => Err("the step of a range is 0: give at least 1".to_owned()),
            _ if first > last => Err(format!("the range is empty: write {last}..{first}")),
            _ => Ok(ParameterDomain::Whole { first, last, step }),
        }
    }

    /// Numbers between two ends.
    pub(crate) fn linear(first: f64, last: f64, count: Option<u64>) -> Result<ParameterDomain, String> {
        check_ends(first, last, count).map(|()| ParameterDomain::Linear { first, last, count })
    }

    /// Numbers between two ends, by their logarithms.
    pub(crate) fn log(first: f64, last: f64, count: Option<u64>) -> Result<ParameterDomain, String> {
        check_ends(first, last, count)?;
        match first > 0.0 {
            true => Ok(ParameterDomain::Log { first, last, count }),
            false => Err(format!(
                "a log range has numbers above 0 only, and this one begins at {first}: begin at a small number \
                 such as 1e-6"
            )),
        }
    }

    /// How many values a grid has of it.
    pub(crate) fn count(&self) -> Result<u64, String> {
        match self {
            ParameterDomain::Values(values) => Ok(values.len() as u64),
            ParameterDomain::Whole { first, last, step } => Ok(whole_numbers(*first, *last, *step)),
            ParameterDomain::Linear { count, .. } | ParameterDomain::Log { count, .. } => {
                count.ok_or_else(|| NO_COUNT.to_owned())
            }
        }
    }

    /// A value of a grid, from 0 on.
    pub(crate) fn at(&self, place: u64) -> Value {
        match self {
            ParameterDomain::Values(values) => values.get(place as usize).cloned().unwrap_or(Value::Null),
            ParameterDomain::Whole { first, step, .. } => {
                Value::from(first.wrapping_add((place * step) as i64))
            }
            ParameterDomain::Linear { first, last, count } => {
                rounded(first + (last - first) * fraction(place, *count))
            }
            ParameterDomain::Log { first, last, count } => {
                rounded((first.ln() + (last.ln() - first.ln()) * fraction(place, *count)).exp())
            }
        }
    }

    /// A value that is drawn: each is as likely as any other, in a log range by its logarithm.
    pub(crate) fn draw(&self, random: &mut ChaCha8Rng) -> Value {
        match self {
            ParameterDomain::Values(values) => self.at(below(random, values.len() as u64)),
            ParameterDomain::Whole { first, last, step } => {
                self.at(below(random, whole_numbers(*first, *last, *step)))
            }
            ParameterDomain::Linear { first, last, .. } => rounded(first + (last - first) * unit(random)),
            ParameterDomain::Log { first, last, .. } => {
                rounded((first.ln() + (last.ln() - first.ln()) * unit(random)).exp())
            }
        }
    }
}

fn check_ends(first: f64, last: f64, count: Option<u64>) -> Result<(), String> {
    match count {
        _ if !first.is_finite() || !last.is_finite() || !(last - first).is_finite() => {
            Err("the ends of a range must be finite numbers".to_owned())
        }
        _ if first > last => Err(format!("the range is empty: write {last}..{first}")),
        Some(0) => Err("a range with 0 numbers is empty: give at least 1".to_owned()),
        Some(count) if count > Array::MAX_MEMBERS => {
            Err(format!("a range has {}: give fewer", counted(count, "number", "numbers")))
        }
        Some(_) | None => Ok(()),
    }
}

/// How many whole numbers a range has.
fn whole_numbers(first: i64, last: i64, step: u64) -> u64 {
    (last.abs_diff(first) / step).saturating_add(1)
}

/// How far a place is between the first and the last of so many.
fn fraction(place: u64, count: Option<u64>) -> f64 {
    match count {
        None | Some(0 | 1) => 0.0,
        Some(count) => place as f64 / (count - 1) as f64,
    }
}

/// A number in [0, 1).
fn unit(random: &mut ChaCha8Rng) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// A number below this one.
fn below(random: &mut ChaCha8Rng, count: u64) -> u64 {
    ((u128::from(random.next_u64()) * u128::from(count)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use rand_chacha::rand_core::SeedableRng as _;

    use super::*;

    fn grid(domain: &ParameterDomain) -> String {
        let values = (0..domain.count().unwrap()).map(|place| domain.at(place).to_string());
        values.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn ranges_have_both_ends() {
        assert_eq!(grid(&ParameterDomain::whole(1, 3, 1).unwrap()), "1 2 3");
        assert_eq!(grid(&ParameterDomain::whole(-2, 5, 3).unwrap()), "-2 1 4");
        assert_eq!(grid(&ParameterDomain::linear(0.0, 1.0, Some(5)).unwrap()), "0 0.25 0.5 0.75 1");
        assert_eq!(
            grid(&ParameterDomain::log(1e-5, 1e-1, Some(5)).unwrap()),
            "0.00001 0.0001 0.001 0.01 0.1"
        );
        assert_eq!(grid(&ParameterDomain::log(0.5, 2.0, Some(1)).unwrap()), "0.5");
        let extreme = ParameterDomain::whole(i64::MIN, i64::MAX, 1).unwrap();
        assert_eq!(extreme.count(), Ok(u64::MAX), "the count is bounded before anything is expanded");
        assert_eq!(extreme.at(0), Value::from(i64::MIN));
    }

    #[test]
    fn ranges_that_have_nothing_or_no_logarithm_are_refused() {
        let (whole, log) =
            (ParameterDomain::whole(3, 1, 1).unwrap_err(), ParameterDomain::log(0.0, 1.0, None).unwrap_err());
        assert_eq!(whole, "the range is empty: write 1..3");
        assert!(log.contains("above 0 only") && log.contains("1e-6"), "{log}");
        assert!(ParameterDomain::log(-1.0, 1.0, None).is_err());
        assert!(ParameterDomain::linear(1.0, 0.5, None).unwrap_err().contains("write 0.5..1"));
        assert!(ParameterDomain::linear(0.0, 1.0, Some(0)).unwrap_err().contains("at least 1"));
        assert!(ParameterDomain::linear(0.0, f64::INFINITY, None).unwrap_err().contains("finite"));
        assert!(ParameterDomain::linear(-f64::MAX, f64::MAX, None).unwrap_err().contains("finite"));
        assert!(ParameterDomain::linear(f64::NAN, 1.0, None).unwrap_err().contains("finite"));
        assert!(ParameterDomain::whole(1, 2, 0).unwrap_err().contains("at least 1"));
        assert!(
            ParameterDomain::linear(0.0, 1.0, None)
                .unwrap()
                .count()
                .unwrap_err()
                .contains("log:1e-5..1e-1:5")
        );
    }

    /// Draws a thousand: about half of them lie in each half of the range.
    #[test]
    fn draws_spread_over_the_range_and_repeat_with_their_seed() {
        let halves = |domain: &ParameterDomain, middle: f64| {
            let mut random = ChaCha8Rng::seed_from_u64(7);
            let drawn: Vec<f64> = (0..1000).map(|_| domain.draw(&mut random).as_f64().unwrap()).collect();
            let low = drawn.iter().filter(|it| **it < middle).count();
            assert!((400..600).contains(&low), "{low}");
            drawn
        };
        let log = ParameterDomain::log(1e-5, 1e-1, None).unwrap();
        let drawn = halves(&log, 1e-3);
        assert_eq!(drawn, halves(&log, 1e-3));
        assert!(drawn.iter().all(|it| (1e-5..=1e-1).contains(it)));
        halves(&ParameterDomain::linear(-1.0, 1.0, None).unwrap(), 0.0);
        let whole = halves(&ParameterDomain::whole(1, 4, 1).unwrap(), 2.5);
        assert!(whole.iter().all(|it| [1.0, 2.0, 3.0, 4.0].contains(it)));
        halves(&ParameterDomain::Values(vec![Value::from(1), Value::from(2)]), 1.5);
    }
}
