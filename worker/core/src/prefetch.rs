//! Attempts that the head orders in advance: each begins when the one before it has ended, without a message
//! in between.
//!
//! An attempt that has not begun exists nowhere but here: it has no directory, no code and no GPU, and the
//! head may give it to others once it was given back. So none outlives the link over which it came.

use cohabit_types::{AttemptId, Predecessor, Report, RunOrder, StopReason, Time};

use crate::interface::{RankExit, WorkerEffect};
use crate::prefetched_order::PrefetchedOrder;
use crate::rank::never_started;
use crate::state::Worker;

impl Worker {
    /// Keeps an attempt until the one that it waits for has ended. One that has begun waits for nothing.
    pub(crate) fn prefetch(
        &mut self,
        now: Time,
        order: RunOrder,
        after: Predecessor,
        out: &mut Vec<WorkerEffect>,
    ) {
        if self.ranks_of(order.attempt).next().is_some() {
            return self.run(now, order, out);
        }
        let prefetched =
            PrefetchedOrder { after: self.present(after.attempt), expires_at: now + after.within, order };
        self.prefetched.insert(prefetched.order.attempt, prefetched);
    }

    /// What is to be waited for instead of an attempt that was given back, as the head may not know yet.
    fn present(&self, mut attempt: AttemptId) -> AttemptId {
        // Orders that follow each other in a circle must not hold it up.
        for _ in 0..self.given_back.len() {
            attempt = self.given_back.get(&attempt).copied().unwrap_or(attempt);
        }
        attempt
    }

    /// Begins what waits for nothing any more. Returns whether there was anything.
    pub(crate) fn begin_prefetched(&mut self, now: Time, out: &mut Vec<WorkerEffect>) -> bool {
        let is_due = |it: &PrefetchedOrder| !self.is_awaited(it.after);
        let due: Vec<AttemptId> =
            self.prefetched.iter().filter(|(_, it)| is_due(it)).map(|(attempt, _)| *attempt).collect();
        for attempt in &due {
            if let Some(PrefetchedOrder { order, .. }) = self.prefetched.remove(attempt) {
                self.run(now, order, out);
            }
        }
        !due.is_empty()
    }

    /// Gives an attempt back that has not begun. Those behind it wait for what it waited for.
    pub(crate) fn give_back(
        &mut self,
        now: Time,
        attempt: AttemptId,
        why: StopReason,
        out: &mut Vec<WorkerEffect>,
    ) {
        let Some(PrefetchedOrder { order, after, .. }) = self.prefetched.remove(&attempt) else { return };
        for behind in self.prefetched.values_mut().filter(|it| it.after == attempt) {
            behind.after = after;
        }
        self.given_back.insert(attempt, after);
        for run in &order.ranks {
            let RankExit { outcome, stopped, at } = never_started(now, why);
            let (rank, usage) = (attempt.rank(run.rank), Vec::new());
            self.report(Some(Report::Ended { rank, outcome, stopped, progress: None, at, usage }), out);
        }
    }

    /// Gives back what has waited for too long: another node may have room for it.
    pub(crate) fn give_back_expired(&mut self, now: Time, out: &mut Vec<WorkerEffect>) {
        let expired = self.prefetched.iter().filter(|(_, it)| it.expires_at <= now);
        for attempt in expired.map(|(attempt, _)| *attempt).collect::<Vec<_>>() {
            self.give_back(now, attempt, StopReason::Superseded, out);
        }
    }

    /// The link is broken: nothing begins any more that has not begun, as the next hello says.
    pub(crate) fn forget_prefetched(&mut self) {
        self.prefetched.clear();
        self.given_back.clear();
    }

    /// When the first of them expires.
    pub(crate) fn prefetch_deadline(&self) -> Option<Time> {
        self.prefetched.values().map(|it| it.expires_at).min()
    }

    /// Whether this attempt has yet to end here.
    fn is_awaited(&self, attempt: AttemptId) -> bool {
        self.prefetched.contains_key(&attempt) || self.ranks_of(attempt).any(|(_, held)| held.is_live())
    }

    /// Checks that each waits for something.
    ///
    /// # Panics
    /// If that does not hold, which is a bug.
    pub(crate) fn check_prefetched(&self) {
        for (attempt, PrefetchedOrder { after, .. }) in &self.prefetched {
            assert!(self.is_awaited(*after), "{attempt} waits for {after}, which has ended");
            assert!(self.ranks_of(*attempt).next().is_none(), "{attempt} has begun, and waits");
        }
    }
}
