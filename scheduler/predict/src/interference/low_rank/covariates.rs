//! What a job on a GPU is: the traits by which its effects are known, and how far each may differ from none.

use std::collections::BTreeMap;

use cohabit_policy::interference::{GpuKind, SetMember};
use serde::{Deserialize, Serialize};

/// A trait of a job.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Covariate {
    name: String,
    /// How much of it the job has.
    pub(super) amount: f64,
    /// How far its effect is expected to lie from 0: the square of a logarithm of a slowdown.
    pub(super) variance: f64,
}

/// All traits that were seen, each with a place.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct CovariateIndex {
    /// Names, in the order of their places.
    names: Vec<String>,
    /// Of how many measurements each was.
    seen: Vec<u32>,
    /// How far the effect of each is expected to lie from 0; only needed while learning.
    #[serde(skip)]
    pub(super) variances: Vec<f64>,
    #[serde(skip)]
    places: BTreeMap<String, usize>,
}

/// A job by the places of its traits.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct EncodedJob {
    /// Place and amount of the traits that are known.
    pub(super) known: Vec<(usize, f64)>,
    /// What the measurements leave open of its effect.
    pub(super) open: f64,
}

/// The part of an effect that is the same on all makes of GPU.
const SHARED_BY_GPUS: f64 = 0.4;
const GPU: f64 = 0.05;
const FAMILY: f64 = 0.06;
const MODEL: f64 = 0.03;
/// A model in steps of about some size.
const BATCH: f64 = 0.04;
const CONFIGURATION: f64 = 0.005;
/// Measurements of the same differ by so much.
pub(super) const NOISE: f64 = 0.003;

/// The traits of a job on a GPU.
pub(super) fn of(member: &SetMember, gpu: &GpuKind) -> Vec<Covariate> {
    let on = gpu.name();
    let mut traits = vec![
        Covariate { name: "any".to_owned(), amount: 1.0, variance: GPU },
        Covariate { name: format!("on {on}"), amount: 1.0, variance: GPU },
    ];
    let mut add = |name: String, amount: f64, variance: f64| {
        traits.push(Covariate {
            name: format!("{name} on {on}"),
            amount,
            variance: (1.0 - SHARED_BY_GPUS) * variance,
        });
        traits.push(Covariate { name, amount, variance: SHARED_BY_GPUS * variance });
    };
    if let Some(family) = member.family {
        add(format!("family {family:?}"), 1.0, FAMILY);
    }
    add(format!("model {}", member.model), 1.0, MODEL);
    // Between two sizes that are four times apart a job is something of both.
    let fourfold = member.batch.map_or(0.0, |batch| (batch.max(1) as f64).log2() / 2.0);
    let (below, part) = (fourfold.floor(), fourfold.fract());
    for (size, amount) in [(below, 1.0 - part), (below + 1.0, part)] {
        if amount > 0.0 {
            add(format!("model {} near {}", member.model, (2.0 * size).exp2()), amount, BATCH);
        }
    }
    add(member.configuration().to_string(), 1.0, CONFIGURATION);
    traits
}

impl CovariateIndex {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.names.len()
    }

    /// One more measurement of a job with these traits.
    pub(super) fn note(&mut self, traits: &[Covariate]) {
        for it in traits {
            let place = *self.places.entry(it.name.clone()).or_insert(self.names.len());
            if place == self.names.len() {
                self.names.push(it.name.clone());
                self.seen.push(0);
                self.variances.push(it.variance);
            }
            self.seen[place] += 1;
        }
    }

    /// The places of known traits, and what is open of all.
    pub(super) fn job(&self, traits: &[Covariate]) -> EncodedJob {
        let mut job = EncodedJob::default();
        for it in traits {
            let place = self.places.get(&it.name).copied();
            let seen = place.map_or(0, |place| self.seen[place]);
            job.known.extend(place.map(|place| (place, it.amount)));
            let variance = it.variance * it.amount * it.amount;
            job.open += variance / (1.0 + f64::from(seen) * variance / NOISE);
        }
        job
    }

    /// With places, which are not stored; nothing if some were never counted.
    pub(super) fn with_places(self) -> Option<CovariateIndex> {
        let places = self.names.iter().cloned().enumerate().map(|(place, name)| (name, place)).collect();
        (self.seen.len() == self.names.len()).then_some(CovariateIndex { places, ..self })
    }
}
