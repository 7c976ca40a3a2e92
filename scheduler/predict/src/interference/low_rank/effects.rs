//! The effects of covariates on slowdowns.

use super::covariates::EncodedJob;

/// The number of products of factors that one fit finds.
pub(super) const RANK: usize = 10;

/// The effects, one number for each covariate.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Effects {
    /// The mean over all pairs.
    pub(super) mean: f64,
    /// The sensitivity of a job.
    pub(super) sensitivity: Vec<f64>,
    /// The pressure of a job.
    pub(super) pressure: Vec<f64>,
    /// The factors of the affected job, one vector for each product.
    pub(super) own: Vec<Vec<f64>>,
    /// The factors of the partner.
    pub(super) partners: Vec<Vec<f64>>,
}

impl Effects {
    /// No effects for this many covariates.
    pub(super) fn none(count: usize) -> Effects {
        let none = || vec![0.0; count];
        Effects {
            mean: 0.0,
            sensitivity: none(),
            pressure: none(),
            own: vec![none(); RANK],
            partners: vec![none(); RANK],
        }
    }

    /// The mean of several fits: their products side by side, each with its part.
    pub(super) fn mean_of(fits: &[Effects]) -> Effects {
        let part = 1.0 / fits.len().max(1) as f64;
        let scaled = |row: &Vec<f64>| row.iter().map(|effect| effect * part).collect::<Vec<f64>>();
        let mean = |of: fn(&Effects) -> &Vec<f64>| {
            let sum =
                |sum: Vec<f64>, one: Vec<f64>| sum.iter().zip(one).map(|(sum, one)| sum + one).collect();
            fits.iter().map(|fit| scaled(of(fit))).reduce(sum).unwrap_or_default()
        };
        Effects {
            mean: fits.iter().map(|fit| fit.mean * part).sum(),
            sensitivity: mean(|fit| &fit.sensitivity),
            pressure: mean(|fit| &fit.pressure),
            own: fits.iter().flat_map(|fit| fit.own.iter().map(scaled)).collect(),
            partners: fits.iter().flat_map(|fit| fit.partners.clone()).collect(),
        }
    }

    /// The slowdown of a job beside a partner, on the scale of the effects.
    pub(super) fn value(&self, own: &EncodedJob, partner: &EncodedJob) -> f64 {
        let additive = Effects::sum(&self.sensitivity, own) + Effects::sum(&self.pressure, partner);
        self.mean + additive + self.products(own, partner)
    }

    /// The interaction of the two jobs.
    pub(super) fn products(&self, own: &EncodedJob, partner: &EncodedJob) -> f64 {
        (0..self.own.len()).map(|product| self.product(product, own, partner)).sum()
    }

    pub(super) fn product(&self, product: usize, own: &EncodedJob, partner: &EncodedJob) -> f64 {
        Effects::sum(&self.own[product], own) * Effects::sum(&self.partners[product], partner)
    }

    /// The effect for a job.
    pub(super) fn sum(effects: &[f64], job: &EncodedJob) -> f64 {
        job.known.iter().map(|(place, amount)| effects[*place] * amount).sum()
    }
}
