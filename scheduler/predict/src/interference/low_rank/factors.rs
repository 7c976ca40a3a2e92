//! Fits the effects of a low-rank model by alternating ridge regressions.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::covariates::{EncodedJob, NOISE};
use super::effects::{Effects, RANK};
use crate::interference::log_slowdown::Censoring;
use crate::interference::random::RandomExt;
use crate::interference::ridge::{SparseRow, ridge};

/// One measured member of a pair.
#[derive(Debug, Clone)]
pub(super) struct PairObservation {
    pub(super) own: EncodedJob,
    pub(super) partner: EncodedJob,
    /// The logarithm of its slowdown.
    pub(super) value: f64,
    pub(super) censoring: Censoring,
}

/// Prior variance of the sum of all products.
const OF_PRODUCTS: f64 = 0.03;
/// Rounds in which all effects, and the censored values, are estimated again.
const ROUNDS: usize = 20;

/// The effects that fit these rows best; `variances` are the prior variances of the covariates' effects.
pub(super) fn fit(rows: &[PairObservation], variances: &[f64], seed: u64) -> Effects {
    let count = variances.len();
    let mut values: Vec<f64> = rows.iter().map(|row| row.value).collect();
    let mut effects = Effects::none(count);
    effects.mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    // The prior variances of the factors are scaled so that the products add up to theirs.
    let usual: f64 =
        rows.iter().map(|row| prior_variance(&row.own, variances)).sum::<f64>() / rows.len().max(1) as f64;
    let stretch = (OF_PRODUCTS / RANK as f64).sqrt() / usual.max(f64::MIN_POSITIVE);
    let of_factors: Vec<f64> = variances.iter().map(|variance| variance * stretch).collect();
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    for factor in &mut effects.partners {
        factor.iter_mut().zip(&of_factors).for_each(|(it, variance)| *it = random.normal() * variance.sqrt());
    }
    for _ in 0..ROUNDS {
        additive(&mut effects, rows, &values, variances);
        for product in 0..RANK {
            factor(&mut effects, rows, &values, &of_factors, product);
        }
        for (value, row) in values.iter_mut().zip(rows) {
            *value = row.censoring.learned(row.value, effects.ln_slowdown(&row.own, &row.partner));
        }
    }
    effects
}

/// Prior variance of the effect for a job.
fn prior_variance(job: &EncodedJob, variances: &[f64]) -> f64 {
    job.known.iter().map(|(place, amount)| variances[*place] * amount * amount).sum()
}

/// Fits sensitivity and pressure at once.
fn additive(effects: &mut Effects, rows: &[PairObservation], values: &[f64], variances: &[f64]) {
    let count = variances.len();
    let rest = rows.iter().zip(values).map(|(row, value)| {
        let of_partner = row.partner.known.iter().map(|(place, amount)| (place + count, *amount));
        let terms = row.own.known.iter().copied().chain(of_partner).collect();
        (terms, value - effects.mean - effects.products(&row.own, &row.partner))
    });
    let rest: Vec<(SparseRow, f64)> = rest.collect();
    let found = ridge(&rest, &[variances, variances].concat(), NOISE);
    effects.sensitivity.copy_from_slice(&found[..count]);
    effects.pressure.copy_from_slice(&found[count..]);
}

/// Fits one product: the factor of the job, then that of the partner.
fn factor(
    effects: &mut Effects,
    rows: &[PairObservation],
    values: &[f64],
    variances: &[f64],
    product: usize,
) {
    let rests: Vec<f64> = rows
        .iter()
        .zip(values)
        .map(|(row, value)| {
            value - effects.ln_slowdown(&row.own, &row.partner)
                + effects.product(product, &row.own, &row.partner)
        })
        .collect();
    let solved = |side: fn(&PairObservation) -> (&EncodedJob, &EncodedJob), other: &[f64]| {
        let scaled = |(row, rest): (&PairObservation, &f64)| {
            let (this, that) = side(row);
            let by = Effects::sum(other, that);
            (this.known.iter().map(|(place, amount)| (*place, amount * by)).collect(), *rest)
        };
        let rows: Vec<(SparseRow, f64)> = rows.iter().zip(&rests).map(scaled).collect();
        ridge(&rows, variances, NOISE)
    };
    effects.own[product] = solved(|row| (&row.own, &row.partner), &effects.partners[product]);
    effects.partners[product] = solved(|row| (&row.partner, &row.own), &effects.own[product]);
}
