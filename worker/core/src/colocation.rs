//! Samples how fast ranks make progress beside which others: a row for each period in which the ranks on a
//! GPU stay the same.
//!
//! A row covers the time from the first to the last progress reported in its period, and nothing before or
//! after. A long period is cut into rows, each twice as long as the one before, so that the head learns about
//! two jobs while they still run. Rows are queued until there is a link, up to a limit.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use cohabit_types::{
    Bytes, ColocationSample, DeviceId, DeviceTelemetry, Progress, RankId, SharingStrategy, Span, Time,
};

/// The most rows that are queued without a link; the oldest are dropped first.
const MAX_QUEUED_SAMPLES: usize = 1_000;
/// The length of the first row of a period.
const FIRST_SAMPLE_LENGTH: Span = Span::from_secs(10);
/// The greatest length of a row, give or take the time between two progress reports.
const MAX_SAMPLE_LENGTH: Span = Span::from_secs(640);

/// The open samples, and the rows that the head does not have yet.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct ColocationSampler {
    open: BTreeMap<RankId, OpenSample>,
    rows: VecDeque<ColocationSample>,
}

/// The device and the neighbors of a rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RankColocation {
    pub(crate) device: DeviceId,
    pub(crate) gpu: Arc<str>,
    pub(crate) sharing: SharingStrategy,
    pub(crate) neighbors: Vec<RankId>,
}

/// A sample whose period has not ended.
#[derive(Debug, Clone, PartialEq)]
struct OpenSample {
    colocation: RankColocation,
    /// The intended length of the current row.
    length: Span,
    /// The first and the last step of the row.
    steps: Option<(Step, Step)>,
    memory: Option<Bytes>,
    utilization: Mean,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Mean {
    sum: f64,
    count: u64,
}

/// A step, and when it was reported.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Step {
    number: u64,
    at: Time,
}

impl ColocationSampler {
    /// Updates the colocation of all ranks. Samples of ranks that are new, gone or have other neighbors end.
    pub(crate) fn update(&mut self, colocations: BTreeMap<RankId, RankColocation>) {
        let over = |rank: &RankId, open: &mut OpenSample| colocations.get(rank) != Some(&open.colocation);
        let ended: Vec<_> = self.open.extract_if(.., over).collect();
        ended.into_iter().for_each(|(rank, open)| self.queue(open.row(rank)));
        for (rank, colocation) in colocations {
            self.open.entry(rank).or_insert_with(|| OpenSample::new(colocation));
        }
    }

    pub(crate) fn progressed(&mut self, rank: RankId, progress: &Progress) {
        let Some(open) = self.open.get_mut(&rank) else { return };
        open.progressed(Step { number: progress.step, at: progress.at });
        let row = open.cut().and_then(|sample| sample.row(rank));
        self.queue(row);
    }

    fn queue(&mut self, row: Option<ColocationSample>) {
        self.rows.extend(row);
        self.rows.drain(..self.rows.len().saturating_sub(MAX_QUEUED_SAMPLES));
    }

    pub(crate) fn record_scan(&mut self, scan: &DeviceTelemetry) {
        for (rank, open) in self.open.iter_mut().filter(|(_, open)| open.colocation.device == scan.device) {
            let held = scan.ranks.iter().find(|(other, _)| other == rank).map(|(_, memory)| *memory);
            open.memory = open.memory.max(held);
            open.utilization.note(scan.reading.utilization);
        }
    }

    /// Takes the rows that are being reported.
    pub(crate) fn take_rows(&mut self) -> Vec<ColocationSample> {
        std::mem::take(&mut self.rows).into()
    }
}

impl OpenSample {
    const fn new(colocation: RankColocation) -> OpenSample {
        let utilization = Mean { sum: 0.0, count: 0 };
        OpenSample { colocation, length: FIRST_SAMPLE_LENGTH, steps: None, memory: None, utilization }
    }

    /// The current row, if it has reached its length. The next row starts where it ends.
    fn cut(&mut self) -> Option<OpenSample> {
        let (first, last) = self.steps?;
        if last.number == first.number || last.at.since(first.at) < self.length {
            return None;
        }
        let next = OpenSample {
            length: (self.length + self.length).min(MAX_SAMPLE_LENGTH),
            steps: Some((last, last)),
            ..OpenSample::new(self.colocation.clone())
        };
        Some(std::mem::replace(self, next))
    }

    /// A program whose step or clock goes back has no rate across the jump.
    fn progressed(&mut self, step: Step) {
        self.steps = match self.steps {
            Some((first, last)) if step.number >= last.number && step.at >= last.at => Some((first, step)),
            Some(_) | None => Some((step, step)),
        };
    }

    /// The row; `None` if no step was completed in it.
    fn row(self, rank: RankId) -> Option<ColocationSample> {
        let (first, last) = self.steps?;
        let (steps, length) = (last.number - first.number, last.at.since(first.at).as_secs_f64());
        let row = || ColocationSample {
            rank,
            device: self.colocation.device,
            gpu: self.colocation.gpu.to_string(),
            sharing: self.colocation.sharing,
            neighbors: self.colocation.neighbors,
            from: first.at,
            to: last.at,
            steps,
            rate: steps as f64 / length,
            memory: self.memory,
            utilization: self.utilization.get(),
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
