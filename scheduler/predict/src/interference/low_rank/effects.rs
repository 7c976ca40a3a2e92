//! Effects of traits on slowdowns.

use super::covariates::EncodedJob;

/// Products of factors.
pub(super) const RANK: usize = 3;

/// Effects, each a number for each trait.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Effects {
    /// Of all pairs.
    pub(super) mean: f64,
    /// How much a job suffers.
    pub(super) sensitivity: Vec<f64>,
    /// How much a job makes suffer.
    pub(super) pressure: Vec<f64>,
    /// The factors of those who suffer, one for each product.
    pub(super) own: Vec<Vec<f64>>,
    /// The factors of those who make suffer.
    pub(super) partners: Vec<Vec<f64>>,
}

impl Effects {
    /// Of so many traits, of which none has any.
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

    /// The logarithm of a job's slowdown beside a partner.
    pub(super) fn of(&self, own: &EncodedJob, partner: &EncodedJob) -> f64 {
        let additive = Effects::sum(&self.sensitivity, own) + Effects::sum(&self.pressure, partner);
        self.mean + additive + self.products(own, partner)
    }

    /// What is special of the two.
    pub(super) fn products(&self, own: &EncodedJob, partner: &EncodedJob) -> f64 {
        (0..self.own.len()).map(|product| self.product(product, own, partner)).sum()
    }

    pub(super) fn product(&self, product: usize, own: &EncodedJob, partner: &EncodedJob) -> f64 {
        Effects::sum(&self.own[product], own) * Effects::sum(&self.partners[product], partner)
    }

    /// The effect of a job.
    pub(super) fn sum(effects: &[f64], job: &EncodedJob) -> f64 {
        job.known.iter().map(|(place, amount)| effects[*place] * amount).sum()
    }
}
