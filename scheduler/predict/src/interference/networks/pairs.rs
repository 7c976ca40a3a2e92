//! The table of measured pairs: how much one job slows another on a GPU, the edges of graphs.

use std::collections::BTreeMap;

use cohabit_policy::interference::{Configuration, GpuKind, MeasuredSet, Outcome};
use serde::{Deserialize, Serialize};

/// Measured pairs.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<Entry>", into = "Vec<Entry>")]
pub(super) struct Pairs {
    by_place: BTreeMap<Place, Slowdown>,
}

/// How much the first suffers beside the second.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Place {
    gpu: GpuKind,
    own: Configuration,
    other: Configuration,
}

/// The mean of the logarithms.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Slowdown {
    ln: f64,
    times: usize,
}

type Entry = (Place, Slowdown);

impl Pairs {
    /// Learns from the sets of two.
    pub(super) fn learn<'a>(&mut self, measured: impl IntoIterator<Item = &'a MeasuredSet>) {
        for it in measured {
            if let ([one, other], Outcome::Ran(observed)) = (&it.set.members[..], &it.outcome) {
                let (one, other) = (one.configuration(), other.configuration());
                for (own, beside, observed) in
                    [(&one, &other, observed.first()), (&other, &one, observed.get(1))]
                {
                    let Some(observed) = observed else { continue };
                    let place = Place { gpu: it.set.gpu.clone(), own: own.clone(), other: beside.clone() };
                    self.by_place.entry(place).or_default().add(observed.slowdown.max(1.0).ln());
                }
            }
        }
    }

    /// The measured slowdown of one job beside another.
    pub(super) fn measured(&self, gpu: &GpuKind, own: &Configuration, other: &Configuration) -> Option<f64> {
        let place = Place { gpu: gpu.clone(), own: own.clone(), other: other.clone() };
        self.by_place.get(&place).map(|slowdown| slowdown.ln.exp())
    }

    /// The same of any batch sizes of the two models, where there is no such pair.
    pub(super) fn of_models(&self, gpu: &GpuKind, own: &Configuration, other: &Configuration) -> Option<f64> {
        let like = |place: &&Place| {
            place.gpu == *gpu && place.own.model == own.model && place.other.model == other.model
        };
        let found = self.by_place.iter().find(|(place, _)| like(place));
        self.measured(gpu, own, other).or_else(|| found.map(|(_, slowdown)| slowdown.ln.exp()))
    }
}

impl Slowdown {
    fn add(&mut self, ln: f64) {
        self.times += 1;
        self.ln += (ln - self.ln) / self.times as f64;
    }
}

impl From<Vec<Entry>> for Pairs {
    fn from(entries: Vec<Entry>) -> Pairs {
        Pairs { by_place: entries.into_iter().collect() }
    }
}

impl From<Pairs> for Vec<Entry> {
    fn from(pairs: Pairs) -> Vec<Entry> {
        pairs.by_place.into_iter().collect()
    }
}
