//! Fits the effects of a low-rank model by alternating ridge regressions.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::covariates::{EncodedJob, NOISE};
use super::effects::{Effects, RANK};
use crate::interference::log_slowdown::Censoring;
use crate::interference::ridge::{RidgeRow, ridge};
use crate::random::RandomExt;

/// One measured member of a pair.
#[derive(Debug, Clone)]
pub(super) struct PairObservation {
    pub(super) own: EncodedJob,
    pub(super) partner: EncodedJob,
    /// Its slowdown on the scale of the effects.
    pub(super) value: f64,
    pub(super) censoring: Censoring,
}

/// Prior variance of the sum of all products.
const OF_PRODUCTS: f64 = 0.1;
/// Rounds in which all effects, and the censored values, are estimated again.
const ROUNDS: usize = 12;
/// Fits from different starting points, which find different products. Their mean is better than each.
const FITS: u64 = 3;
/// Degrees of freedom of Student's distribution of the errors: a few measurements are far off.
const DEGREES: f64 = 4.0;

/// The effects that fit these rows best; `variances` are the prior variances of the covariates' effects.
pub(super) fn fit(rows: &[PairObservation], variances: &[f64], seed: u64) -> Effects {
    let fits =
        (0..FITS).map(|number| fit_once(rows, variances, seed.wrapping_mul(FITS).wrapping_add(number)));
    Effects::mean_of(&fits.collect::<Vec<_>>())
}

fn fit_once(rows: &[PairObservation], variances: &[f64], seed: u64) -> Effects {
    let count = variances.len();
    let mut targets: Vec<Target> = rows.iter().map(|row| Target { value: row.value, weight: 1.0 }).collect();
    let mut effects = Effects::none(count);
    effects.mean = rows.iter().map(|row| row.value).sum::<f64>() / rows.len().max(1) as f64;
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
        additive(&mut effects, rows, &targets, variances);
        for product in 0..RANK {
            factor(&mut effects, rows, &targets, &of_factors, product);
        }
        for (target, row) in targets.iter_mut().zip(rows) {
            *target = Target::of(row, effects.value(&row.own, &row.partner));
        }
    }
    effects
}

/// What a row is fitted to.
#[derive(Debug, Clone, Copy)]
struct Target {
    value: f64,
    weight: f64,
}

impl Target {
    /// The target of a row for which this value is predicted.
    fn of(row: &PairObservation, predicted: f64) -> Target {
        let value = row.censoring.learned(row.value, predicted);
        let error = (value - predicted).powi(2) / NOISE;
        Target { value, weight: (DEGREES + 1.0) / (DEGREES + error) }
    }
}

/// Prior variance of the effect for a job.
fn prior_variance(job: &EncodedJob, variances: &[f64]) -> f64 {
    job.known.iter().map(|(place, amount)| variances[*place] * amount * amount).sum()
}

/// Fits sensitivity and pressure at once.
fn additive(effects: &mut Effects, rows: &[PairObservation], targets: &[Target], variances: &[f64]) {
    let count = variances.len();
    let rest = rows.iter().zip(targets).map(|(row, Target { value, weight })| {
        let of_partner = row.partner.known.iter().map(|(place, amount)| (place + count, *amount));
        let terms = row.own.known.iter().copied().chain(of_partner).collect();
        let value = value - effects.mean - effects.products(&row.own, &row.partner);
        RidgeRow { terms, value, weight: *weight }
    });
    let rest: Vec<RidgeRow> = rest.collect();
    let found = ridge(&rest, &[variances, variances].concat(), NOISE);
    effects.sensitivity.copy_from_slice(&found[..count]);
    effects.pressure.copy_from_slice(&found[count..]);
}

/// Fits one product: the factor of the job, then that of the partner.
fn factor(
    effects: &mut Effects,
    rows: &[PairObservation],
    targets: &[Target],
    variances: &[f64],
    product: usize,
) {
    let rest = |row: &PairObservation| {
        effects.value(&row.own, &row.partner) - effects.product(product, &row.own, &row.partner)
    };
    let rests: Vec<f64> = rows.iter().zip(targets).map(|(row, target)| target.value - rest(row)).collect();
    let solved = |side: fn(&PairObservation) -> (&EncodedJob, &EncodedJob), other: &[f64]| {
        let scaled = |((row, rest), target): ((&PairObservation, &f64), &Target)| {
            let (this, that) = side(row);
            let by = Effects::sum(other, that);
            let terms = this.known.iter().map(|(place, amount)| (*place, amount * by)).collect();
            RidgeRow { terms, value: *rest, weight: target.weight }
        };
        let rows: Vec<RidgeRow> = rows.iter().zip(&rests).zip(targets).map(scaled).collect();
        ridge(&rows, variances, NOISE)
    };
    let own = solved(|row| (&row.own, &row.partner), &effects.partners[product]);
    effects.partners[product] = solved(|row| (&row.partner, &row.own), &own);
    effects.own[product] = own;
}
