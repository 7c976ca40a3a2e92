//! The covariates of a job on a GPU, and the prior variance of the effect of each.

use std::collections::BTreeMap;

use cohabit_policy::interference::{GpuKind, SetMember};
use cohabit_types::ModelFamily;
use serde::{Deserialize, Serialize};

/// A covariate of a job.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Covariate {
    name: String,
    /// Its value for the job.
    pub(super) amount: f64,
    /// Prior variance of its effect: the square of a logarithm of a slowdown.
    pub(super) variance: f64,
}

/// All covariates that were seen, each with an index.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct CovariateIndex {
    /// Names in the order of their indices.
    names: Vec<String>,
    /// The number of measurements of each.
    #[serde(rename = "seen")]
    counts: Vec<u32>,
    /// Prior variances; only needed for training.
    #[serde(skip)]
    pub(super) variances: Vec<f64>,
    #[serde(skip)]
    places: BTreeMap<String, usize>,
}

/// A job as indices of covariates.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct EncodedJob {
    /// Index and value of the known covariates.
    pub(super) known: Vec<(usize, f64)>,
    /// The variance of its effect that the measurements leave.
    pub(super) open: f64,
}

/// The part of an effect's variance that all GPU models share.
const SHARED_BY_GPUS: f64 = 0.4;
const VARIANCE_GPU: f64 = 0.05;
const VARIANCE_FAMILY: f64 = 0.06;
const VARIANCE_MODEL: f64 = 0.03;
/// A model with a batch size near some size.
const VARIANCE_BATCH: f64 = 0.04;
const VARIANCE_CONFIGURATION: f64 = 0.005;
/// Variance of repeated measurements.
pub(super) const NOISE: f64 = 0.003;

/// The covariates of a job on a GPU.
pub(super) fn covariates_of(member: &SetMember, gpu: &GpuKind) -> Vec<Covariate> {
    let on = gpu.name();
    let mut covariates = vec![
        Covariate { name: "any".to_owned(), amount: 1.0, variance: VARIANCE_GPU },
        Covariate { name: format!("on {on}"), amount: 1.0, variance: VARIANCE_GPU },
    ];
    let mut add = |name: String, amount: f64, variance: f64| {
        covariates.push(Covariate {
            name: format!("{name} on {on}"),
            amount,
            variance: (1.0 - SHARED_BY_GPUS) * variance,
        });
        covariates.push(Covariate { name, amount, variance: SHARED_BY_GPUS * variance });
    };
    if let Some(family) = member.family {
        add(format!("family {}", stored_name(family)), 1.0, VARIANCE_FAMILY);
    }
    add(format!("model {}", member.model), 1.0, VARIANCE_MODEL);
    // A batch size between two sizes that are four times apart has a part of both.
    let fourfold = member.batch.map_or(0.0, |batch| (batch.max(1) as f64).log2() / 2.0);
    let (below, part) = (fourfold.floor(), fourfold.fract());
    for (size, amount) in [(below, 1.0 - part), (below + 1.0, part)] {
        if amount > 0.0 {
            add(format!("model {} near {}", member.model, (2.0 * size).exp2()), amount, VARIANCE_BATCH);
        }
    }
    add(member.configuration().to_string(), 1.0, VARIANCE_CONFIGURATION);
    covariates
}

/// The name of a family in the covariates of stored models. It must never change, or stored models would no
/// longer know their families.
const fn stored_name(family: ModelFamily) -> &'static str {
    match family {
        ModelFamily::Cnn => "Cnn",
        ModelFamily::Rnn => "Rnn",
        ModelFamily::Transformer => "Transformer",
        ModelFamily::Embedding => "Embedding",
        ModelFamily::Other => "Other",
    }
}

impl CovariateIndex {
    /// The number of covariates.
    pub(super) fn count(&self) -> usize {
        self.names.len()
    }

    /// Counts a measurement of a job with these covariates.
    pub(super) fn note(&mut self, covariates: &[Covariate]) {
        for it in covariates {
            let place = *self.places.entry(it.name.clone()).or_insert(self.names.len());
            if place == self.names.len() {
                self.names.push(it.name.clone());
                self.counts.push(0);
                self.variances.push(it.variance);
            }
            self.counts[place] += 1;
        }
    }

    /// The indices of the known covariates, and the variance that remains.
    pub(super) fn job(&self, covariates: &[Covariate]) -> EncodedJob {
        let mut job = EncodedJob::default();
        for it in covariates {
            let place = self.places.get(&it.name).copied();
            let seen = place.map_or(0, |place| self.counts[place]);
            job.known.extend(place.map(|place| (place, it.amount)));
            let variance = it.variance * it.amount * it.amount;
            job.open += variance / (1.0 + f64::from(seen) * variance / NOISE);
        }
        job
    }

    /// Adds the indices, which are not stored; `None` if names and counts do not match.
    pub(super) fn with_places(self) -> Option<CovariateIndex> {
        let places = self.names.iter().cloned().enumerate().map(|(place, name)| (name, place)).collect();
        (self.counts.len() == self.names.len()).then_some(CovariateIndex { places, ..self })
    }
}
