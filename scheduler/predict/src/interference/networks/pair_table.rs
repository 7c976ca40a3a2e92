//! The table of measured pairs: how much one job slows another on a GPU. They are the edges of graphs.

use std::collections::BTreeMap;

use cohabit_policy::interference::{Configuration, GpuKind, MeasuredSet, SetOutcome};
use serde::{Deserialize, Serialize};

/// The measured pairs.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<Entry>", into = "Vec<Entry>")]
pub(super) struct PairTable {
    /// By GPU, own configuration and that of the other, so that none has to be copied for a question.
    by_gpu: BTreeMap<GpuKind, BTreeMap<Configuration, BTreeMap<Configuration, MeanSlowdown>>>,
}

/// The slowdown of the first configuration beside the second.
#[derive(Debug, Clone, Serialize, Deserialize)]
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
                    self.entry(place).add(observed.slowdown.max(1.0).ln());
                }
            }
        }
    }

    fn entry(&mut self, PairKey { gpu, own, other }: PairKey) -> &mut MeanSlowdown {
        self.by_gpu.entry(gpu).or_default().entry(own).or_default().entry(other).or_default()
    }

    /// The measured slowdown of one configuration beside another.
    pub(super) fn measured(&self, gpu: &GpuKind, own: &Configuration, other: &Configuration) -> Option<f64> {
        let slowdown = self.by_gpu.get(gpu)?.get(own)?.get(other)?;
        Some(slowdown.ln.exp())
    }

    /// The measured slowdown, or that of the same models with other batch sizes.
    pub(super) fn measured_or_similar(
        &self,
        gpu: &GpuKind,
        own: &Configuration,
        other: &Configuration,
    ) -> Option<f64> {
        let similar = || {
            let owns = self.by_gpu.get(gpu)?.iter().filter(|(known, _)| known.model == own.model);
            let mut others = owns.flat_map(|(_, others)| others);
            let (_, slowdown) = others.find(|(known, _)| known.model == other.model)?;
            Some(slowdown.ln.exp())
        };
        self.measured(gpu, own, other).or_else(similar)
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
        let mut pairs = PairTable::default();
        entries.into_iter().for_each(|(place, slowdown)| *pairs.entry(place) = slowdown);
        pairs
    }
}

impl From<PairTable> for Vec<Entry> {
    fn from(pairs: PairTable) -> Vec<Entry> {
        let mut entries = Vec::new();
        for (gpu, owns) in pairs.by_gpu {
            for (own, others) in owns {
                entries.extend(others.into_iter().map(|(other, slowdown)| {
                    (PairKey { gpu: gpu.clone(), own: own.clone(), other }, slowdown)
                }));
            }
        }
        entries
    }
}
