//! Takes events: what the worker does about everything that can happen to it.
//!
//! What is ordered twice is done once, and what comes too late is ignored, because reports and orders may
//! cross and the head repeats itself after each of its restarts.

use std::collections::BTreeSet;

use cohabit_types::{AttemptId, AttemptProgress, Order, Progress, RankId, Report, StopReason, Time};

use crate::interface::{FoundRank, GpuAccess, Lease, MpsOrder, WorkerEffect, WorkerEvent};
use crate::rank::{RankEntry, RankState};
use crate::state::{CodeState, LinkState, Worker, advance_stop};

impl Worker {
    /// Applies an event and appends the effects, in order, to `out`.
    pub fn handle(&mut self, now: Time, event: WorkerEvent, out: &mut Vec<WorkerEffect>) {
        let begin = out.len();
        match event {
            WorkerEvent::Order(Order::Run(order)) => match order.after {
                Some(after) => self.prefetch(now, *order, after, out),
                None => self.run(now, *order, out),
            },
            WorkerEvent::Order(Order::Withdraw(attempt)) => {
                self.give_back(now, attempt, StopReason::Superseded, out);
            }
            WorkerEvent::Order(Order::Stop { attempt, why }) => self.stop(now, attempt, why, out),
            WorkerEvent::Order(Order::Acknowledge(rank)) => self.acknowledge(rank, out),
            WorkerEvent::Order(Order::Allot { attempt, host }) => self.allot(attempt, host, out),
            WorkerEvent::CodeFetched(attempt, result) => self.code_fetched(now, attempt, result, out),
            WorkerEvent::CheckpointsFetched(attempt, fetched) => {
                self.checkpoints_fetched(attempt, fetched, out);
            }
            WorkerEvent::Spawned(rank) => self.spawned(now, rank, out),
            WorkerEvent::SpawnFailed(rank, failure) => self.spawn_failed(now, rank, failure, out),
            WorkerEvent::Exited(rank, ending) => self.exited(rank, ending, out),
            WorkerEvent::Progress(rank, progress) => self.progressed(now, rank, progress),
            WorkerEvent::Found(found) => self.found(now, *found, out),
            WorkerEvent::Linked => self.linked(now, out),
            WorkerEvent::Unlinked => self.unlinked(now, out),
            WorkerEvent::Mps(device, word) => self.handle_mps(now, &device, word, out),
            WorkerEvent::Sharing(rank, enforcement) => self.record_enforcement(now, rank, enforcement, out),
            WorkerEvent::PrivateUser(rank, uid) => self.record_private_user(rank, uid, out),
            WorkerEvent::Sampled(samples) => self.handle_samples(now, samples, out),
            WorkerEvent::ProcessorTime(readings) => self.processor_time_read(now, &readings, out),
            WorkerEvent::Xid(device, code) => self.xid(now, &device, code, out),
            WorkerEvent::Allotted(attempt, in_force) => self.allotted(attempt, in_force, out),
            WorkerEvent::Alarm => self.alarm(now, out),
        }
        self.begin_prefetched(now, out);
        self.update_gpus(now, out);
        // An attempt that waits for a GPU ends there if the GPU is lost.
        while self.begin_prefetched(now, out) {
            self.update_gpus(now, out);
        }
        self.report_signals(begin, out);
    }

    /// Checks the invariants of the state.
    ///
    /// # Panics
    /// If one does not hold, which is a bug.
    pub fn check(&self) {
        for (rank, held) in &self.ranks {
            assert!(held.is_live() || held.deadline().is_none(), "{rank} ended and still has a deadline");
            assert!(held.is_live() || held.report(*rank).is_some(), "{rank} ended and has no report");
        }
        for (attempt, state) in &self.code {
            let is_abandoned = *state == CodeState::Abandoned;
            assert!(is_abandoned || self.is_code_used(*attempt), "{attempt} keeps its code: {state:?}");
        }
        for attempt in self.checkpoints.keys() {
            let is_live = self.ranks_of(*attempt).any(|(_, held)| held.is_live());
            assert!(is_live, "{attempt} has ended and keeps its state of checkpoints");
        }
        self.check_prefetched();
        self.check_gpus();
    }

    pub(crate) fn stop(
        &mut self,
        now: Time,
        attempt: AttemptId,
        why: StopReason,
        out: &mut Vec<WorkerEffect>,
    ) {
        self.give_back(now, attempt, why, out);
        for rank in self.ranks_of(attempt).map(|(rank, _)| *rank).collect::<Vec<_>>() {
            self.stop_rank(now, rank, why, out);
        }
    }

    fn acknowledge(&mut self, rank: RankId, out: &mut Vec<WorkerEffect>) {
        self.given_back.remove(&rank.attempt);
        if self.ranks.get(&rank).is_some_and(|held| !held.is_live()) {
            self.ranks.remove(&rank);
            out.push(WorkerEffect::Forget(rank));
        }
    }

    /// The progress of an attempt is that of its lowest rank that reports any.
    fn progressed(&mut self, now: Time, rank: RankId, progress: Progress) {
        let Some(held) = self.ranks.get_mut(&rank).filter(|held| held.is_live()) else { return };
        self.colocation.progressed(rank, &progress);
        held.progressed(now, progress);
        if self.reporting_rank(rank.attempt).is_some_and(|(reporting_rank, _)| reporting_rank == rank) {
            self.progress.changed(rank.attempt);
        }
    }

    /// The MPS daemon of a client is still running, too; it is adopted before anything else can happen to it.
    fn found(&mut self, now: Time, found: FoundRank, out: &mut Vec<WorkerEffect>) {
        let (rank, account) = (found.start.rank, found.start.account.clone());
        let (has_code, code_owner) = (found.start.spec.code.is_some(), found.start.code_owner());
        let held = self.ranks.entry(rank).or_insert_with(|| RankEntry::found(found));
        if has_code && held.is_live() {
            self.code.insert(code_owner, CodeState::Ready);
        }
        match (held.is_live(), held.access) {
            (true, GpuAccess::Mps(_)) => {
                for device in held.devices.clone() {
                    if let Some(gpu) = self.gpus.get(&device).filter(|gpu| gpu.has_no_daemon()) {
                        let adopt = MpsOrder::Adopt(gpu.account_of_daemon(&account));
                        self.order(&device, adopt, out);
                    }
                }
            }
            (true, GpuAccess::TimeSliced(_)) => self.report_time_slicing(now, rank, out),
            (true, GpuAccess::None | GpuAccess::Exclusive) | (false, _) => {}
        }
    }

    /// The head of a new link may have been restarted, so everything is reported again.
    fn linked(&mut self, now: Time, out: &mut Vec<WorkerEffect>) {
        self.link = LinkState::Up;
        self.lease(Lease::Held, out);
        for (rank, held) in &self.ranks {
            out.extend(held.report(*rank).map(WorkerEffect::Report));
            out.extend(held.report_sharing(*rank).map(WorkerEffect::Report));
            out.extend(held.report_user(*rank).map(WorkerEffect::Report));
            if held.is_live() && held.progress.is_some() {
                self.progress.changed(rank.attempt);
            }
        }
        let attempts: BTreeSet<AttemptId> = self.ranks.keys().map(|rank| rank.attempt).collect();
        for attempt in attempts {
            self.report(self.stall_report(now, attempt), out);
            self.report(self.idle_report(now, attempt).or_else(|| self.activity_report(attempt)), out);
            self.report_checkpoints(attempt, out);
        }
    }

    /// Executors stop their ranks if the link stays down. A rank without an executor must not start
    /// meanwhile: the head may give it up and start another attempt elsewhere.
    fn unlinked(&mut self, now: Time, out: &mut Vec<WorkerEffect>) {
        self.link = LinkState::Down;
        self.lease(Lease::Orphaned, out);
        self.forget_prefetched();
        for rank in self.waiting() {
            self.stop_rank(now, rank, StopReason::Orphaned, out);
        }
    }

    fn alarm(&mut self, now: Time, out: &mut Vec<WorkerEffect>) {
        for (rank, held) in &mut self.ranks {
            match &mut held.state {
                RankState::Starting(sequence) => {
                    out.extend(sequence.advance(now).then_some(WorkerEffect::Kill(*rank)))
                }
                RankState::Running { sequence, .. } => {
                    advance_stop(*rank, sequence, |it| it.advance(now), out)
                }
                RankState::Waiting(_) | RankState::Ended(_) => {}
            }
        }
        self.give_back_expired(now, out);
        self.notice_stalls(now, out);
        if self.is_linked() {
            self.report_progress(now, out);
        }
    }

    fn report_progress(&mut self, now: Time, out: &mut Vec<WorkerEffect>) {
        let changed = self.progress.take(now);
        let batch: Vec<AttemptProgress> = changed
            .into_iter()
            .filter_map(|attempt| {
                let (_, progress) = self.reporting_rank(attempt)?;
                Some(AttemptProgress { attempt, progress: progress.clone() })
            })
            .collect();
        if !batch.is_empty() {
            out.push(WorkerEffect::Report(Report::Progress(batch)));
        }
    }

    /// Executors that are being started get the lease when their rank runs.
    fn lease(&self, lease: Lease, out: &mut Vec<WorkerEffect>) {
        let running = self.ranks.iter().filter(|(_, held)| matches!(held.state, RankState::Running { .. }));
        out.extend(running.map(|(rank, _)| WorkerEffect::Lease(*rank, lease)));
    }
}
