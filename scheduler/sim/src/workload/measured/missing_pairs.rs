//! What a pair that nobody measured would do to each other.
//!
//! Two numbers for each configuration explain most of what is measured: how much it suffers from others, and
//! how much others suffer from it. The logarithm of a slowdown is taken for their sum and a mean of all; both
//! are fitted by least squares, with a little weight on 0 for what was seldom seen.

use std::collections::BTreeMap;

use cohabit_policy::interference::Configuration;

/// A slowdown of one configuration beside another.
pub(super) struct PairSlowdown<'a> {
    pub(super) who: &'a Configuration,
    pub(super) beside: &'a Configuration,
    pub(super) slowdown: f64,
}

/// What usually becomes of pairs.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct AdditiveEffects {
    mean: f64,
    sensitivity: BTreeMap<Configuration, f64>,
    pressure: BTreeMap<Configuration, f64>,
}

/// So many further observations say that a configuration is like all others.
const WEIGHT_OF_THE_MEAN: f64 = 0.5;
/// Far more than it takes until nothing changes any more.
const ROUNDS: usize = 60;

impl AdditiveEffects {
    pub(super) fn of(observed: &[PairSlowdown<'_>]) -> AdditiveEffects {
        let logs: Vec<f64> = observed.iter().map(|it| it.slowdown.max(1.0).ln()).collect();
        let mean = logs.iter().sum::<f64>() / logs.len().max(1) as f64;
        let mut usual = AdditiveEffects { mean, ..AdditiveEffects::default() };
        for _ in 0..ROUNDS {
            let left =
                observed.iter().zip(&logs).map(|(it, log)| (it.who, log - mean - usual.presses(it.beside)));
            usual.sensitivity = means(left);
            let left =
                observed.iter().zip(&logs).map(|(it, log)| (it.beside, log - mean - usual.suffers(it.who)));
            usual.pressure = means(left);
        }
        usual
    }

    /// The slowdown of the one beside the other.
    pub(super) fn slowdown(&self, who: &Configuration, beside: &Configuration) -> f64 {
        (self.mean + self.suffers(who) + self.presses(beside)).exp().max(1.0)
    }

    fn suffers(&self, who: &Configuration) -> f64 {
        self.sensitivity.get(who).copied().unwrap_or_default()
    }

    fn presses(&self, who: &Configuration) -> f64 {
        self.pressure.get(who).copied().unwrap_or_default()
    }
}

fn means<'a>(values: impl Iterator<Item = (&'a Configuration, f64)>) -> BTreeMap<Configuration, f64> {
    let mut sums: BTreeMap<&Configuration, (f64, f64)> = BTreeMap::new();
    for (who, value) in values {
        let (sum, count) = sums.entry(who).or_insert((0.0, WEIGHT_OF_THE_MEAN));
        *sum += value;
        *count += 1.0;
    }
    sums.into_iter().map(|(who, (sum, count))| (who.clone(), sum / count)).collect()
}
