//! The table of measured pairs: how much one job slows another on a GPU. They are the edges of graphs.

use std::collections::BTreeMap;

use cohabit_policy::interference::{Configuration, GpuKind, MeasuredSet, SetOutcome};
use serde::{Deserialize, Serialize};

/// The measured pairs.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<Entry>", into = "Vec<Entry>")]
pub(super) struct PairTable {
    by_place: BTreeMap<PairKey, MeanSlowdown>,
}

/// The slowdown of the first configuration beside the second.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct PairKey {
    gpu: GpuKind,
    own: Configuration,
    other: Configuration,
}

/// The mean of the logarithms.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct MeanSlowdown {
    ln: f64,
    times: usize,
}

type Entry = (PairKey, MeanSlowdown);

impl PairTable {
    /// Adds the sets of two.
    pub(super) fn learn<'a>(&mut self, measured: impl IntoIterator<Item = &'a MeasuredSet>) {
        for it in measured {
            if let ([one, other], SetOutcome::Ran(observed)) = (&it.set.members[..], &it.outcome) {
                let (one, other) = (one.configuration(), other.configuration());
                for (own, partner, observed) in
                    [(&one, &other, observed.first()), (&other, &one, observed.get(1))]
                {
                    let Some(observed) = observed else { continue };
                    let place = PairKey { gpu: it.set.gpu.clone(), own: own.clone(), other: partner.clone() };
                    self.by_place.entry(place).or_default().add(observed.slowdown.max(1.0).ln());
                }
            }
        }
    }

    /// The measured slowdown of one configuration beside another.
    pub(super) fn measured(&self, gpu: &GpuKind, own: &Configuration, other: &Configuration) -> Option<f64> {
        let place = PairKey { gpu: gpu.clone(), own: own.clone(), other: other.clone() };
        self.by_place.get(&place).map(|slowdown| slowdown.ln.exp())
    }

    /// The measured slowdown, or that of the same models with other batch sizes.
    pub(super) fn measured_or_similar(
        &self,
        gpu: &GpuKind,
        own: &Configuration,
        other: &Configuration,
    ) -> Option<f64> {
        let like = |place: &&PairKey| {
            place.gpu == *gpu && place.own.model == own.model && place.other.model == other.model
        };
        let found = self.by_place.iter().find(|(place, _)| like(place));
        self.measured(gpu, own, other).or_else(|| found.map(|(_, slowdown)| slowdown.ln.exp()))
    }
}

impl MeanSlowdown {
    fn add(&mut self, ln: f64) {
        self.times += 1;
        self.ln += (ln - self.ln) / self.times as f64;
    }
}

impl From<Vec<Entry>> for PairTable {
    fn from(entries: Vec<Entry>) -> PairTable {
        PairTable { by_place: entries.into_iter().collect() }
    }
}

impl From<PairTable> for Vec<Entry> {
    fn from(pairs: PairTable) -> Vec<Entry> {
        pairs.by_place.into_iter().collect()
    }
}
