//! Swaps replicas between servers while that helps: what the greedy grouping missed.
//!
//! Where the slowest device sets the pace, a swap is judged by the two servers that it touches, so that it
//! also helps where several servers are equally slow and one has to be relieved before another. The number
//! of devices used on a server never changes.

use super::IterationModel;
use super::iteration_time::{Arrangement, DeviceSpeeds, IterationTime, StageSeconds};

/// A placement with the times of its servers, kept up to date.
#[derive(Debug, Clone)]
pub(super) struct SwapSearch<'m> {
    time: IterationTime<'m>,
    /// The speeds of each server's devices.
    speeds: &'m [DeviceSpeeds],
    /// Replicas of each stage on each server, in rows of servers.
    replicas: Vec<u32>,
    seconds: Vec<StageSeconds>,
    /// Rows of two servers, kept while a swap is tried.
    kept: Vec<StageSeconds>,
}

/// Replicas of stage `give` of server `one` for as many of stage `take` of server `other`.
#[derive(Debug, Clone, Copy)]
struct Swap {
    count: u32,
    one: usize,
    give: usize,
    other: usize,
    take: usize,
}

impl<'m> SwapSearch<'m> {
    pub(super) fn new(
        time: IterationTime<'m>,
        speeds: &'m [DeviceSpeeds],
        replicas: Vec<u32>,
    ) -> SwapSearch<'m> {
        let seconds = vec![StageSeconds::default(); replicas.len()];
        let mut board = SwapSearch { time, speeds, replicas, seconds, kept: Vec::new() };
        (0..speeds.len()).for_each(|server| board.measure(server));
        board
    }

    pub(super) fn into_arrangement(self) -> Arrangement {
        Arrangement { alpha: self.alpha(), replicas: self.replicas }
    }

    /// Seconds of one iteration.
    pub(super) fn alpha(&self) -> f64 {
        self.time.combine(&self.seconds)
    }

    /// Applies the best swap as long as one helps.
    ///
    /// This ends, because each swap shortens the iteration or makes the slower of two servers faster.
    pub(super) fn refine(mut self) -> SwapSearch<'m> {
        while let Some(swap) = self.best_swap() {
            self.apply(swap);
        }
        self
    }

    fn best_swap(&mut self) -> Option<Swap> {
        let mut least = self.alpha();
        let mut best = None;
        for swap in self.promising_swaps() {
            let reached = self.try_out(swap);
            if reached < least {
                (least, best) = (reached, Some(swap));
            }
        }
        best
    }

    /// Where the slowest device sets the pace, only its server needs a change.
    fn promising_swaps(&self) -> Vec<Swap> {
        let alpha = self.alpha();
        let is_slowest = |server: &usize| self.alone(*server) >= alpha;
        let servers = 0..self.speeds.len();
        match self.time.iteration {
            IterationModel::Bottleneck => {
                let partners = |one| servers.clone().map(move |other| (one, other));
                self.swaps_between(servers.clone().filter(is_slowest).flat_map(partners))
            }
            IterationModel::Synchronous { .. } => {
                let partners = |one| servers.clone().skip(one + 1).map(move |other| (one, other));
                self.swaps_between(servers.clone().flat_map(partners))
            }
        }
    }

    /// Swaps of one replica, and of as many as there are: a ring gets faster only when its last replica
    /// leaves the server. Replicas of one stage are interchangeable.
    fn swaps_between(&self, pairs: impl Iterator<Item = (usize, usize)>) -> Vec<Swap> {
        let stages = self.time.graph.stages().len();
        let replicas = |server: usize, stage: usize| self.replicas[server * stages + stage];
        let present = |server: usize| (0..stages).filter(move |stage| replicas(server, *stage) > 0);
        let mut swaps = Vec::new();
        for (one, other) in pairs.filter(|(one, other)| one != other) {
            for give in present(one) {
                for take in present(other).filter(|take| *take != give) {
                    let most = replicas(one, give).min(replicas(other, take));
                    let counts = [Some(1), (most > 1).then_some(most)].into_iter().flatten();
                    swaps.extend(counts.map(|count| Swap { count, one, give, other, take }));
                }
            }
        }
        swaps
    }

    /// The result of the swap: the iteration time, or that of the slower of its two servers.
    fn try_out(&mut self, swap: Swap) -> f64 {
        let rows = [self.row(swap.one), self.row(swap.other)];
        self.kept.clear();
        rows.iter().for_each(|row| self.kept.extend_from_slice(&self.seconds[row.clone()]));
        self.apply(swap);
        let reached = match self.time.iteration {
            IterationModel::Bottleneck => self.alone(swap.one).max(self.alone(swap.other)),
            IterationModel::Synchronous { .. } => self.alpha(),
        };
        self.exchange(Swap { give: swap.take, take: swap.give, ..swap });
        let kept = self.kept.chunks_exact(rows[0].len());
        rows.into_iter().zip(kept).for_each(|(row, kept)| self.seconds[row].copy_from_slice(kept));
        reached
    }

    /// The iteration time if all other servers took no time.
    fn alone(&self, server: usize) -> f64 {
        self.time.combine(&self.seconds[self.row(server)])
    }

    fn apply(&mut self, swap: Swap) {
        self.exchange(swap);
        self.measure(swap.one);
        self.measure(swap.other);
    }

    fn exchange(&mut self, swap: Swap) {
        let stages = self.time.graph.stages().len();
        for (server, loses, gains) in [(swap.one, swap.give, swap.take), (swap.other, swap.take, swap.give)] {
            self.replicas[server * stages + loses] -= swap.count;
            self.replicas[server * stages + gains] += swap.count;
        }
    }

    fn measure(&mut self, server: usize) {
        let row = self.row(server);
        self.time.server(&self.speeds[server], &self.replicas[row.clone()], &mut self.seconds[row]);
    }

    fn row(&self, server: usize) -> std::ops::Range<usize> {
        let stages = self.time.graph.stages().len();
        server * stages..(server + 1) * stages
    }
}
