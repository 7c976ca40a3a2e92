//! How much GPU memory a job will hold, by what earlier runs held and by what the job states.
//!
//! Memory is linear in the batch size: weights, gradients and the optimizer's state are constant,
//! activations come with each sample. A job that holds more than expected takes it from its neighbors, so
//! every answer has a margin, and an answer without a run behind it is a guess by which no job shares a GPU.

use std::collections::BTreeMap;

use cohabit_types::Bytes;

use super::{Configuration, GpuKind, ModelFeatures};

/// The most memory that runs held, by what they trained.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Footprints {
    runs: BTreeMap<Key, Runs>,
    noted: u64,
}

/// Kind of GPU, model, precision and batch size, in this order, so that the batch sizes of one model are
/// neighbors.
type Key = (GpuKind, String, String, Option<u64>);

/// The GPU memory that a job is expected to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footprint {
    /// The memory, with its margin.
    pub bytes: Bytes,
    /// Whether the job may share a GPU by this figure.
    pub certainty: Certainty,
    /// The source of the figure, for people: `3 runs of resnet-50 (32)`.
    pub basis: String,
}

/// How well a footprint is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// From a description, or far from what was seen: for display only.
    Guessed,
    /// From runs of the same configuration, or of others not far from it.
    Known,
}

/// Runs of one configuration on one kind of GPU.
#[derive(Debug, Default, Clone, PartialEq)]
struct Runs {
    count: u64,
    most: Bytes,
    /// The sequence number of the last one among all runs.
    last: u64,
}

/// The most memory that was held with each batch size.
type BySize = BTreeMap<u64, Bytes>;

/// Configurations that are remembered, on all kinds of GPU.
const MAX_CONFIGURATIONS: usize = 8_192;

/// A job that does not state its batch size may have had another one in each run.
const RUNS_WITHOUT_BATCH: u64 = 3;

/// What a run may hold beyond earlier runs of the same configuration, as a fraction,
const MARGIN_OF_THE_SAME: f64 = 0.05;
/// and beyond what runs with other batch sizes suggest;
const MARGIN_OF_OTHERS: f64 = 0.15;
/// the margin is at least this many bytes.
const MIN_MARGIN: f64 = (256_u64 << 20) as f64;

/// A line through measurements is trusted up to this many times the largest batch size.
const EXTRAPOLATION_FACTOR: u64 = 2;

/// Bytes for one parameter in training with Adam: the weight, its gradient and two moments, four bytes each.
const BYTES_OF_A_PARAMETER: f64 = 16.0;
/// What a process holds before it trains anything: the CUDA context and the kernels of its libraries.
const CUDA_CONTEXT_BYTES: f64 = (600_u64 << 20) as f64;

impl Footprints {
    /// Records the most memory that a run held on such a GPU. The run has completed, or has done everything
    /// that it does many times. A run without a name is ignored.
    pub fn note(&mut self, gpu: &GpuKind, configuration: &Configuration, held: Bytes) {
        if configuration.model.is_empty() || held == Bytes::ZERO {
            return;
        }
        self.noted += 1;
        let runs = self.runs.entry(key(gpu, configuration, configuration.batch)).or_default();
        *runs = Runs { count: runs.count + 1, most: runs.most.max(held), last: self.noted };
        if self.runs.len() > MAX_CONFIGURATIONS {
            let oldest = self.runs.iter().min_by_key(|(_, runs)| runs.last).map(|(key, _)| key.clone());
            oldest.map(|key| self.runs.remove(&key));
        }
    }

    /// The memory that a job is expected to hold on any of these kinds of GPU: the largest of them all, and
    /// known only if it is known on each. `None` without any basis.
    #[must_use]
    pub fn expect(
        &self,
        gpus: &[GpuKind],
        asked: &Configuration,
        features: &ModelFeatures,
    ) -> Option<Footprint> {
        let mut on_each: Vec<Footprint> = gpus.iter().filter_map(|gpu| self.seen(gpu, asked)).collect();
        if on_each.is_empty() || on_each.len() < gpus.len() {
            on_each.extend(described(features));
            on_each.iter_mut().for_each(|it| it.certainty = Certainty::Guessed);
        }
        let certainty = on_each.iter().map(|it| it.certainty).min()?;
        let most = on_each.into_iter().max_by_key(|it| it.bytes)?;
        Some(Footprint { certainty, ..most })
    }

    /// What runs on such a GPU suggest.
    fn seen(&self, gpu: &GpuKind, asked: &Configuration) -> Option<Footprint> {
        let same = self.runs.get(&key(gpu, asked, asked.batch));
        let Some(batch) = asked.batch else {
            return same
                .filter(|it| it.count >= RUNS_WITHOUT_BATCH)
                .map(|it| it.estimate_same(asked, it.most));
        };
        let of_model = self.runs.range(key(gpu, asked, None)..=key(gpu, asked, Some(u64::MAX)));
        let sizes: BySize = of_model.filter_map(|((.., batch), it)| Some(((*batch)?, it.most))).collect();
        match same {
            Some(same) => Some(same.estimate_same(asked, largest_up_to(&sizes, batch))),
            None => of_others(&sizes, &asked.model, batch),
        }
    }
}

fn key(gpu: &GpuKind, Configuration { model, precision, .. }: &Configuration, batch: Option<u64>) -> Key {
    (gpu.clone(), model.clone(), precision.clone(), batch)
}

impl Runs {
    fn estimate_same(&self, same: &Configuration, most: Bytes) -> Footprint {
        let runs = if self.count == 1 { "a run".to_owned() } else { format!("{} runs", self.count) };
        let batch = same.batch.map(|it| format!(" ({it})")).unwrap_or_default();
        Footprint {
            bytes: with_margin(most.0 as f64, MARGIN_OF_THE_SAME),
            certainty: Certainty::Known,
            basis: format!("{runs} of {}{batch}", same.model),
        }
    }
}

/// The most that was seen with this batch size or a smaller one, which cannot need more.
fn largest_up_to(sizes: &BySize, batch: u64) -> Bytes {
    sizes.range(..=batch).map(|(_, held)| *held).max().unwrap_or_default()
}

/// The footprint of a batch size that was not seen, by runs with other batch sizes: on the line through
/// them, but no less than any smaller batch and no more than the next larger one.
fn of_others(sizes: &BySize, model: &str, batch: u64) -> Option<Footprint> {
    let same = |held: Bytes| with_margin(held.0 as f64, MARGIN_OF_THE_SAME);
    let next = sizes.range(batch..).next().map(|(larger, _)| *larger);
    let at_most = next.map(|larger| same(largest_up_to(sizes, larger)));
    let Some(line) = line_through(sizes) else {
        let basis = format!("{model} with a batch of {}, which needs at least as much", next?);
        return Some(Footprint { bytes: at_most?, certainty: Certainty::Known, basis });
    };
    let from_line = with_margin(line(batch), MARGIN_OF_OTHERS);
    let bytes = from_line.min(at_most.unwrap_or(from_line)).max(same(largest_up_to(sizes, batch)));
    let (smallest, largest) = (*sizes.first_key_value()?.0, *sizes.last_key_value()?.0);
    let is_near = batch <= largest.saturating_mul(EXTRAPOLATION_FACTOR);
    let certainty = if is_near { Certainty::Known } else { Certainty::Guessed };
    let basis = format!("{model} with {} batches of {smallest} to {largest}", sizes.len());
    Some(Footprint { bytes, certainty, basis })
}

/// The least-squares line of bytes by batch size, if it does not fall; `None` for a single size.
fn line_through(sizes: &BySize) -> Option<impl Fn(u64) -> f64> {
    let count = sizes.len() as f64;
    let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / count;
    let middle = mean(&mut sizes.keys().map(|batch| *batch as f64));
    let height = mean(&mut sizes.values().map(|held| held.0 as f64));
    let off = |(batch, held): (&u64, &Bytes)| (*batch as f64 - middle, held.0 as f64 - height);
    let (rise, width) = sizes
        .iter()
        .map(off)
        .fold((0.0, 0.0), |(rise, width), (right, up)| (rise + right * up, width + right * right));
    let slope = (rise / width).max(0.0);
    (sizes.len() > 1).then_some(move |batch: u64| height + slope * (batch as f64 - middle))
}

/// The footprint of a job that was never seen and states the size of its model.
fn described(features: &ModelFeatures) -> Option<Footprint> {
    let held = features.parameters? * BYTES_OF_A_PARAMETER + features.activation_bytes? + CUDA_CONTEXT_BYTES;
    Some(Footprint {
        bytes: with_margin(held, MARGIN_OF_OTHERS),
        certainty: Certainty::Guessed,
        basis: "its description: parameters with gradients and Adam's moments, activations and a context"
            .to_owned(),
    })
}

fn with_margin(held: f64, margin: f64) -> Bytes {
    Bytes((held + (held * margin).max(MIN_MARGIN)).ceil() as u64)
}

#[cfg(test)]
mod tests;
