//! The shortest waiting job of each class, on each node that it fits.
//!
//! All jobs of a class need the same, so their alignment on a node is the same, and of a class only the
//! shortest job can have the best score. After a start only the node that changed is looked at again.

use std::cmp::Ordering;

use cohabit_types::{JobId, Span, Time};

use super::alignment::{alignment, work};
use crate::queue::{PendingQueue, QueueEntry};
use crate::{FreeNodes, PendingJob, ResourceAmounts, View};

/// What the jobs of a class are ordered by: what is left of the run time, then the submission.
pub(super) type ShortestKey = (Span, Time);

/// The first job of a class.
pub(super) struct Candidate<'v> {
    pub(super) job: &'v PendingJob,
    entry: QueueEntry<ShortestKey>,
    /// What is left of it.
    pub(super) work: f64,
    /// Its alignment on each node that it fits, by position.
    places: Vec<(usize, f64)>,
    /// The sum of these alignments.
    sum: f64,
    /// The place with the largest of them; of equal ones, the first.
    best: Option<(usize, f64)>,
}

/// A candidate and the best node for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct BestStart {
    /// The index of the candidate.
    pub(super) candidate: usize,
    /// The position of the node.
    pub(super) node: usize,
    pub(super) alignment: f64,
}

impl<'v> Candidate<'v> {
    pub(super) fn new(
        entry: QueueEntry<ShortestKey>,
        view: &'v View,
        whole: ResourceAmounts,
    ) -> Option<Candidate<'v>> {
        let job = view.pending.get(&entry.job)?;
        let work = work(&job.demand, entry.key.0, whole);
        Some(Candidate { job, entry, work, places: Vec::new(), sum: 0.0, best: None })
    }

    /// The next job of its class, on the same places.
    pub(super) fn next(
        self,
        queue: &PendingQueue<ShortestKey>,
        view: &'v View,
        whole: ResourceAmounts,
    ) -> Option<Candidate<'v>> {
        let next = Candidate::new(queue.behind(&self.entry)?, view, whole)?;
        Some(Candidate { job: next.job, entry: next.entry, work: next.work, ..self })
    }

    /// Looks at all nodes.
    pub(super) fn look_at_all(&mut self, free: &FreeNodes<'_>) {
        let places = free.nodes().enumerate();
        self.places =
            places.filter_map(|(at, node)| Some((at, alignment(&self.job.demand, node)?))).collect();
        self.sum_up();
    }

    /// Looks again at a node on which less is free than before.
    pub(super) fn look_at(&mut self, position: usize, free: &FreeNodes<'_>) {
        let Ok(place) = self.places.binary_search_by_key(&position, |(at, _)| *at) else { return };
        match alignment(&self.job.demand, free.node(position)) {
            Some(alignment) => self.places[place].1 = alignment,
            None => {
                self.places.remove(place);
            }
        }
        self.sum_up();
    }

    /// Whether it fits any node.
    pub(super) const fn fits(&self) -> bool {
        self.best.is_some()
    }

    fn sum_up(&mut self) {
        self.sum = self.places.iter().map(|(_, alignment)| alignment).sum();
        let better = |best: Option<(usize, f64)>, place: &(usize, f64)| match best {
            Some(best) if best.1 >= place.1 => Some(best),
            Some(_) | None => Some(*place),
        };
        self.best = self.places.iter().fold(None, better);
    }

    /// Between equal scores the earlier submission wins.
    fn tie_break(&self) -> (Time, JobId) {
        (self.job.submitted_at, self.job.id)
    }

    /// Less work first; for jobs that have no score.
    pub(super) fn compare_work(&self, other: &Candidate<'_>) -> Ordering {
        self.work.total_cmp(&other.work).then(self.tie_break().cmp(&other.tie_break()))
    }
}

/// The pair of a candidate and a node with the largest score: the alignment less the work, which counts so
/// much that on average over all pairs both weigh the same.
pub(super) fn best_start(candidates: &[Candidate<'_>]) -> Option<BestStart> {
    let epsilon = epsilon(candidates);
    let start = |(candidate, it): (usize, &Candidate<'_>)| {
        let (node, alignment) = it.best?;
        Some((alignment - epsilon * it.work, BestStart { candidate, node, alignment }))
    };
    let starts = candidates.iter().enumerate().filter_map(start);
    let tie_break = |start: &BestStart| candidates[start.candidate].tie_break();
    let best = starts.max_by(|(score, start), (other_score, other)| {
        score.total_cmp(other_score).then_with(|| tie_break(other).cmp(&tie_break(start)))
    });
    best.map(|(_, start)| start)
}

/// The mean alignment of all pairs divided by their mean work.
fn epsilon(candidates: &[Candidate<'_>]) -> f64 {
    let alignments: f64 = candidates.iter().map(|it| it.sum).sum();
    let works: f64 = candidates.iter().map(|it| it.work * it.places.len() as f64).sum();
    if works > 0.0 { alignments / works } else { 0.0 }
}
