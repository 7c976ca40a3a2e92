//! Short members of an array are ordered in advance: each begins on its worker when the one before it has
//! ended there, without a message in between.
//!
//! Such a member still waits here: it holds nothing, and no count has it among the running ones. When the end
//! of the one before it is reported, it takes that place, for a worker reports in the order of events: had it
//! given the member back, that would have been known before. It gives back what has not begun after
//! [`Predecessor::within`], when the head withdraws it, and when their link breaks.

use std::collections::BTreeMap;

use cohabit_types::{AttemptId, JobId, NodeId, Order, Predecessor, RankId, ReasonCode, Span, StopReason};

use crate::head::Head;
use crate::interface::Effect;
use crate::job::PrefetchedAttempt;
use crate::placement::PlannedStart;
use crate::terminal_state::TerminalState;
use crate::transition::Transition;

/// The most members in advance at one place.
const MAX_DEPTH: u64 = 8;

/// A worker waits so many times as long as the work before should last: what was expected in vain may go to
/// another place then.
const PATIENCE: u64 = 4;

impl Transition<'_> {
    /// Orders members of an array in advance, to follow one that has just taken the place of an attempt that
    /// had lasted for so long.
    pub(crate) fn prefetch_behind(&mut self, first: JobId, lasted: Span) {
        let depth = (self.head.config.prefetch.as_micros() / lasted.as_micros().max(1)).min(MAX_DEPTH);
        let Some(mut last) = self.head.live_attempt_id(first) else { return };
        for _ in 0..depth {
            last = match self.head.volatile.followers.get(&last).copied() {
                Some(follower) => self.head.prefetched_id(follower),
                None => self.head.next_to_prefetch(first, last).map(|next| self.prefetch(first, next, last)),
            }
            .unwrap_or(last);
        }
    }

    /// Orders this member to follow `after`, where `first` runs.
    fn prefetch(&mut self, first: JobId, next: JobId, after: AttemptId) -> AttemptId {
        let running = self.head.jobs[&first].live_attempt().expect("it runs");
        let planned = PlannedStart {
            placement: running.placement.clone(),
            runtime: running.expected_runtime,
            slowdown: running.predicted_slowdown,
            why: String::new(),
        };
        let (mut attempt, orders) = self.head.new_attempt(next, &planned, self.now);
        attempt.ordered_at = Some(self.now);
        let id = next.attempt(attempt.number);
        self.head.leave_queue(next);
        if let Some(waiting) = self.job_mut(next).waiting_mut() {
            waiting.prefetched = Some(Box::new(PrefetchedAttempt { attempt, after, cancelled: None }));
        }
        self.head.volatile.followers.insert(after, next);
        self.changed(next);
        for (key, mut order) in orders {
            order.after = Some(Predecessor { attempt: after, within: self.head.config.prefetch * PATIENCE });
            self.effect(Effect::SendOrder(key, Order::Run(Box::new(order))));
        }
        id
    }

    /// Begins what was to follow an attempt that has ended. Returns which job that is.
    pub(crate) fn begin_follower(&mut self, after: AttemptId) -> Option<JobId> {
        let id = self.head.volatile.followers.remove(&after)?;
        let prefetched = self.job_mut(id).waiting_mut()?.prefetched.take()?;
        let PrefetchedAttempt { mut attempt, cancelled, .. } = *prefetched;
        attempt.started_at = self.now;
        self.begin(id, attempt, format!("follows {}: it was ordered in advance", after.job));
        if let Some(why) = cancelled {
            self.stop_attempt(id, why);
        }
        Some(id)
    }

    /// A rank of a prefetched attempt was given back: the job waits as before, or ends if it was cancelled.
    pub(crate) fn given_back(&mut self, id: JobId) {
        let Some(waiting) = self.job_mut(id).waiting_mut() else { return };
        let (prefetched, eligible_at) = (waiting.prefetched.take(), waiting.eligible_at);
        let Some(PrefetchedAttempt { attempt, after, cancelled }) = prefetched.map(|it| *it) else { return };
        self.head.volatile.followers.remove(&after);
        if let Some(behind) = self.head.volatile.followers.remove(&id.attempt(attempt.number)) {
            self.head.volatile.followers.insert(after, behind);
            if let Some(prefetched) = self.prefetched_mut(behind) {
                prefetched.after = after;
            }
        }
        match cancelled {
            Some(_) => self.end_job(id, TerminalState::Cancelled, ReasonCode::CancelledByUser),
            None => {
                self.refresh_eligibility(id);
                // It has waited all the time.
                if let Some(waiting) = self.job_mut(id).waiting_mut() {
                    waiting.eligible_at = eligible_at;
                }
                self.changed(id);
            }
        }
    }

    /// The worker of this node holds no such attempts any more but these, which have begun.
    pub(crate) fn settle_prefetched(&mut self, node: NodeId, begun: impl Fn(RankId) -> bool) {
        for id in self.head.prefetched_on(node) {
            if !self.head.prefetched_id(id).is_some_and(|attempt| begun(attempt.rank(0))) {
                self.given_back(id);
            }
        }
    }

    /// The backup that this head continues from knows nothing of what its workers did since.
    pub(crate) fn forget_prefetched(&mut self) {
        for id in self.head.volatile.followers.values().copied().collect::<Vec<_>>() {
            self.given_back(id);
        }
    }

    /// Cancels a job that may begin at any moment: it ends when its worker has given it back.
    pub(crate) fn cancel_prefetched(&mut self, id: JobId, why: StopReason) {
        if let Some(prefetched) = self.prefetched_mut(id) {
            prefetched.cancelled = Some(why);
            self.changed(id);
            self.withdraw_prefetched(id);
        }
    }

    /// Withdraws what was to follow an attempt, which is about to be stopped.
    pub(crate) fn withdraw_behind(&mut self, mut attempt: AttemptId) {
        while let Some(follower) = self.head.volatile.followers.get(&attempt).copied() {
            self.withdraw_prefetched(follower);
            let Some(next) = self.head.prefetched_id(follower) else { return };
            attempt = next;
        }
    }

    /// Withdraws everything that was ordered in advance: the order of jobs may be another one now.
    pub(crate) fn withdraw_all(&mut self) {
        for id in self.head.volatile.followers.values().copied().collect::<Vec<_>>() {
            self.withdraw_prefetched(id);
        }
    }

    fn withdraw_prefetched(&mut self, id: JobId) {
        let Some(prefetched) = self.head.prefetched(id) else { return };
        let attempt = id.attempt(prefetched.attempt.number);
        let node = prefetched.attempt.ranks.first().map(|rank| rank.node);
        if let Some(key) = node.and_then(|node| self.head.link_of(node)) {
            self.effect(Effect::SendOrder(key, Order::Withdraw(attempt)));
        }
    }

    fn prefetched_mut(&mut self, id: JobId) -> Option<&mut PrefetchedAttempt> {
        self.head.job_mut(id)?.waiting_mut()?.prefetched.as_deref_mut()
    }
}

impl Head {
    /// What a worker holds of this job in advance.
    pub(crate) fn prefetched(&self, id: JobId) -> Option<&PrefetchedAttempt> {
        self.jobs.get(&id)?.waiting()?.prefetched.as_deref()
    }

    fn prefetched_id(&self, id: JobId) -> Option<AttemptId> {
        Some(id.attempt(self.prefetched(id)?.attempt.number))
    }

    fn live_attempt_id(&self, id: JobId) -> Option<AttemptId> {
        Some(id.attempt(self.jobs.get(&id)?.live_attempt()?.number))
    }

    /// Whether this rank was ordered in advance, on this node, and has not begun as far as is known.
    pub(crate) fn is_prefetched(&self, rank: RankId, node: NodeId) -> bool {
        let prefetched = self.prefetched(rank.attempt.job).map(|it| &it.attempt);
        let prefetched = prefetched.filter(|it| it.number == rank.attempt.attempt);
        let known = prefetched.and_then(|attempt| attempt.ranks.get(rank.rank as usize));
        known.is_some_and(|known| known.node == node)
    }

    fn prefetched_on(&self, node: NodeId) -> Vec<JobId> {
        let is_there = |id: &JobId| {
            self.prefetched(*id).is_some_and(|it| it.attempt.ranks.iter().any(|rank| rank.node == node))
        };
        self.volatile.followers.values().copied().filter(is_there).collect()
    }

    /// The member that may follow `last` at the place where `first` runs: one of the same array that a plan
    /// could not know better about.
    ///
    /// No limit of its user is in the way: it runs instead of the one before. It comes after `last` in the
    /// order of ids, in which a worker tells over a new link what has ended.
    fn next_to_prefetch(&self, first: JobId, last: AttemptId) -> Option<JobId> {
        let next = *self.eligible.first()?;
        let attempt = self.jobs[&first].live_attempt()?;
        let [part] = &attempt.placement.parts[..] else { return None };
        self.nodes.get(&part.node).filter(|node| node.takes_jobs() && node.prefetches)?;
        let is_next = last.job < next && self.waits_alone(first.number) && self.is_alike(next, first);
        let is_alone = attempt.ranks.len() == 1 && self.is_exclusive(&attempt.placement, Some(first));
        (is_next && is_alone).then_some(next)
    }

    /// What follows what, from the jobs.
    pub(crate) fn all_followers(&self) -> BTreeMap<AttemptId, JobId> {
        self.active.iter().filter_map(|id| Some((self.prefetched(*id)?.after, *id))).collect()
    }
}
