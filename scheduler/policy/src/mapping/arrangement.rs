//! How the replicas of a job are spread over given servers: the step MAP, and the random arrangement for
//! comparison.
//!
//! An arrangement knows servers only by their costs, so it holds for all servers of the same shape.

use super::heavy_edge::{Start, heavy_edge};
use super::iteration_time::{Arrangement, DeviceSpeeds, IterationTime};
use super::split_mix::SplitMix64;
use super::swap_search::SwapSearch;
use super::{MapperOptions, Selection, Toggle};

/// Jobs with more replicas are not refined: the number of swaps grows with the square.
const MAX_REFINED: u32 = 64;

/// Jobs with more replicas are refined from the best start only.
const MAX_REFINED_EACH: u32 = 16;

/// The number of starts; with more stages, evenly spaced ones are tried.
const MAX_STARTS: usize = 32;

/// Which group grows first. The last groups get what is left, so the order matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FillOrder {
    LargestFirst,
    SmallestFirst,
}

/// The input of an arrangement.
#[derive(Debug, Clone, Copy)]
pub(super) struct ArrangementInput<'m> {
    pub(super) time: IterationTime<'m>,
    /// The costs of each server.
    pub(super) speeds: &'m [DeviceSpeeds],
    /// Devices used of each server; they sum up to the job's replicas.
    pub(super) counts: &'m [u32],
}

impl<'m> ArrangementInput<'m> {
    pub(super) fn arrange(&self, options: &MapperOptions) -> Arrangement {
        match options.selection {
            Selection::Consolidate | Selection::Fragments => self.tight(options),
            Selection::Random(seed) => self.random(seed),
        }
    }

    /// The best greedy grouping, refined; among equals, the first. Large jobs are refined once, others from
    /// each start.
    pub(super) fn tight(&self, options: &MapperOptions) -> Arrangement {
        let graph = self.time.graph;
        let boards = self.starts(options.multi_start).map(|(start, filled)| self.grow_groups(start, filled));
        let refine = match options.swaps {
            Toggle::On if graph.devices() <= MAX_REFINED_EACH => fastest(boards.map(SwapSearch::refine)),
            Toggle::On if graph.devices() <= MAX_REFINED => fastest(boards).refine(),
            Toggle::On | Toggle::Off => fastest(boards),
        };
        refine.into_arrangement()
    }

    /// The heaviest edge first, then each stage. On a single server there is nothing to choose.
    fn starts(&self, multi_start: Toggle) -> impl Iterator<Item = (Start, FillOrder)> {
        let stages = self.time.graph.stages().len();
        let tried = match multi_start {
            Toggle::On if self.counts.len() > 1 => stages,
            Toggle::On | Toggle::Off => 0,
        };
        let further = (0..tried).step_by(stages.div_ceil(MAX_STARTS)).map(Start::Stage);
        let both = |start| [(start, FillOrder::LargestFirst), (start, FillOrder::SmallestFirst)];
        std::iter::once((Start::HeaviestEdge, FillOrder::LargestFirst)).chain(further.flat_map(both))
    }

    fn grow_groups(&self, start: Start, filled: FillOrder) -> SwapSearch<'m> {
        let graph = self.time.graph;
        match filled {
            FillOrder::LargestFirst => self.board(heavy_edge(graph, self.counts, start)),
            FillOrder::SmallestFirst => {
                let counts: Vec<u32> = self.counts.iter().rev().copied().collect();
                let rows = heavy_edge(graph, &counts, start);
                let rows = rows.chunks_exact(graph.stages().len()).rev();
                self.board(rows.flatten().copied().collect())
            }
        }
    }

    fn board(&self, replicas: Vec<u32>) -> SwapSearch<'m> {
        SwapSearch::new(self.time, self.speeds, replicas)
    }

    /// Stage by stage, server by server, in the order of the counts.
    pub(super) fn consecutive(&self) -> Arrangement {
        self.deal(|_, left| left.iter().position(|replicas| *replicas > 0).unwrap_or(0))
    }

    /// Replicas drawn one by one; the draws follow from the seed, the job and the counts.
    fn random(&self, seed: u64) -> Arrangement {
        let mut draws = SplitMix64::new(seed);
        self.time.graph.seed().into_iter().for_each(|half| draws.mix(half));
        self.counts.iter().for_each(|count| draws.mix(u64::from(*count)));
        self.deal(|unplaced, left| nth(left, draws.below(unplaced)))
    }

    /// Replicas one by one, each of the stage that `choose` names, given how many are left in total and of
    /// each stage.
    fn deal(&self, mut choose: impl FnMut(u32, &[u32]) -> usize) -> Arrangement {
        let mut left: Vec<u32> = self.time.graph.stages().iter().map(|stage| stage.replicas).collect();
        let mut unplaced = self.time.graph.devices();
        let mut replicas = Vec::with_capacity(left.len() * self.counts.len());
        for count in self.counts {
            let mut row = vec![0; left.len()];
            for _ in 0..*count {
                let stage = choose(unplaced, &left);
                left[stage] -= 1;
                row[stage] += 1;
                unplaced -= 1;
            }
            replicas.append(&mut row);
        }
        self.board(replicas).into_arrangement()
    }
}

/// The search with the shortest iteration; among equals, the first.
fn fastest<'m>(boards: impl Iterator<Item = SwapSearch<'m>>) -> SwapSearch<'m> {
    let faster =
        |best: SwapSearch<'m>, next: SwapSearch<'m>| if next.alpha() < best.alpha() { next } else { best };
    boards.reduce(faster).expect("the heaviest edge is always a start")
}

/// The stage of the replica at this position among those that are left.
fn nth(left: &[u32], position: u32) -> usize {
    let mut passed = 0;
    let reaches = |replicas: &u32| {
        passed += replicas;
        passed > position
    };
    left.iter().position(reaches).unwrap_or(0)
}
