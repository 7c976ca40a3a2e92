//! How fast ranks got on beside which others: a row for each stretch of time during which the ranks on a GPU
//! were the same.
//!
//! A stretch counts from the first progress that was reported within it to the last, so that it holds nothing
//! of the time before or after. A long one is told in pieces, each twice as long as the one before, so that
//! the head learns how two jobs get on while they still run. Rows wait for a link, in so far as they are not
//! too many.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use cohabit_types::{
    Bytes, ColocationSample, DeviceId, DeviceTelemetry, Progress, RankId, SharingStrategy, Span, Time,
};

/// So many rows are kept while nobody can be told; the oldest go first.
const MAX_QUEUED_SAMPLES: usize = 1_000;
/// How long the first piece of a stretch is.
const FIRST_SAMPLE_LENGTH: Span = Span::from_secs(10);
/// No piece is longer by more than what lies between two reports of progress.
const MAX_SAMPLE_LENGTH: Span = Span::from_secs(640);

/// The stretches that go on, and the rows that the head does not have yet.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct ColocationSampler {
    open: BTreeMap<RankId, OpenSample>,
    rows: VecDeque<ColocationSample>,
}

/// Where a rank runs, and beside which others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RankColocation {
    pub(crate) device: DeviceId,
    pub(crate) gpu: Arc<str>,
    pub(crate) sharing: SharingStrategy,
    pub(crate) neighbours: Vec<RankId>,
}

/// A stretch that goes on.
#[derive(Debug, Clone, PartialEq)]
struct OpenSample {
    place: RankColocation,
    /// How long the present piece is to be.
    piece: Span,
    /// The first step that counts and the last.
    steps: Option<(Step, Step)>,
    memory: Option<Bytes>,
    utilisation: Mean,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Mean {
    sum: f64,
    count: u64,
}

/// A step that was done at this time.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Step {
    number: u64,
    at: Time,
}

impl ColocationSampler {
    /// Where all ranks run now: the stretches of those that came, went or have other neighbours end.
    pub(crate) fn settle(&mut self, colocations: BTreeMap<RankId, RankColocation>) {
        let over = |rank: &RankId, open: &mut OpenSample| colocations.get(rank) != Some(&open.place);
        let ended: Vec<_> = self.open.extract_if(.., over).collect();
        ended.into_iter().for_each(|(rank, open)| self.keep(open.row(rank)));
        for (rank, place) in colocations {
            self.open.entry(rank).or_insert_with(|| OpenSample::at(place));
        }
    }

    pub(crate) fn progressed(&mut self, rank: RankId, progress: &Progress) {
        let Some(open) = self.open.get_mut(&rank) else { return };
        open.progressed(Step { number: progress.step, at: progress.at });
        let piece = open.cut().and_then(|piece| piece.row(rank));
        self.keep(piece);
    }

    fn keep(&mut self, row: Option<ColocationSample>) {
        self.rows.extend(row);
        self.rows.drain(..self.rows.len().saturating_sub(MAX_QUEUED_SAMPLES));
    }

    pub(crate) fn record_scan(&mut self, seen: &DeviceTelemetry) {
        for (rank, open) in self.open.iter_mut().filter(|(_, open)| open.place.device == seen.device) {
            let held = seen.ranks.iter().find(|(other, _)| other == rank).map(|(_, memory)| *memory);
            open.memory = open.memory.max(held);
            open.utilisation.note(seen.reading.utilisation);
        }
    }

    /// The rows that the head is about to be told.
    pub(crate) fn take_rows(&mut self) -> Vec<ColocationSample> {
        std::mem::take(&mut self.rows).into()
    }
}

impl OpenSample {
    const fn at(place: RankColocation) -> OpenSample {
        let utilisation = Mean { sum: 0.0, count: 0 };
        OpenSample { place, piece: FIRST_SAMPLE_LENGTH, steps: None, memory: None, utilisation }
    }

    /// The piece that has become as long as it was to be, if it has; the next one starts where it ends.
    fn cut(&mut self) -> Option<OpenSample> {
        let (first, last) = self.steps?;
        if last.number == first.number || last.at.since(first.at) < self.piece {
            return None;
        }
        let next = OpenSample {
            piece: (self.piece + self.piece).min(MAX_SAMPLE_LENGTH),
            steps: Some((last, last)),
            ..OpenSample::at(self.place.clone())
        };
        Some(std::mem::replace(self, next))
    }

    /// A program that counts anew, or whose clock does, has no rate over the jump.
    fn progressed(&mut self, step: Step) {
        self.steps = match self.steps {
            Some((first, last)) if step.number >= last.number && step.at >= last.at => Some((first, step)),
            Some(_) | None => Some((step, step)),
        };
    }

    /// What is to be told of a piece; nothing where no step was seen from its beginning to its end.
    fn row(self, rank: RankId) -> Option<ColocationSample> {
        let (first, last) = self.steps?;
        let (steps, length) = (last.number - first.number, last.at.since(first.at).as_secs_f64());
        let row = || ColocationSample {
            rank,
            device: self.place.device,
            gpu: self.place.gpu.to_string(),
            sharing: self.place.sharing,
            neighbours: self.place.neighbours,
            from: first.at,
            to: last.at,
            steps,
            rate: steps as f64 / length,
            memory: self.memory,
            utilisation: self.utilisation.get(),
        };
        (steps > 0 && length > 0.0).then(row)
    }
}

impl Mean {
    fn note(&mut self, value: Option<f64>) {
        self.sum += value.unwrap_or(0.0);
        self.count += u64::from(value.is_some());
    }

    fn get(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}
