//! Which attempts do nothing: told when they have for long enough, and when they do something again.
//!
//! `usage_meter` knows what each GPU does, `activity_meter` what else a rank of an interactive job does.

use std::collections::BTreeSet;

use cohabit_types::{AttemptId, DeviceId, RankId, Report, Span, Time};

use crate::activity_meter::ActivityMeter;
use crate::interface::WorkerEffect;
use crate::rank::{RankEntry, RankState};
use crate::state::Worker;

impl Worker {
    /// The ranks of interactive jobs: their processor time is read every few seconds
    /// ([`WorkerEvent::ProcessorTime`](crate::WorkerEvent::ProcessorTime)).
    pub fn watched_for_activity(&self) -> impl Iterator<Item = RankId> {
        let is_watched =
            |held: &RankEntry| held.activity.is_some() && matches!(held.state, RankState::Running { .. });
        self.ranks.iter().filter(move |(_, held)| is_watched(held)).map(|(rank, _)| *rank)
    }

    pub(crate) fn processor_time_read(
        &mut self,
        now: Time,
        readings: &[(RankId, Span)],
        out: &mut Vec<WorkerEffect>,
    ) {
        for (rank, used) in readings {
            if let Some(activity) = self.ranks.get_mut(rank).and_then(|held| held.activity.as_mut()) {
                activity.read_processor_time(now, *used);
            }
        }
        self.report_idleness(now, out);
    }

    /// Reports which attempts have come to do nothing, and which of them do something again.
    pub(crate) fn report_idleness(&mut self, now: Time, out: &mut Vec<WorkerEffect>) {
        let attempts: BTreeSet<AttemptId> = self.ranks.keys().map(|rank| rank.attempt).collect();
        for attempt in attempts {
            let since = self.idle_since(attempt);
            let Some(first) = self.ranks.get_mut(&attempt.rank(0)) else { continue };
            let idle = since.filter(|since| now.since(*since) >= first.idle_after);
            if first.idle_noticed != idle && first.is_live() {
                first.idle_noticed = idle;
                let active = Report::Active(attempt);
                self.report(self.idle_report(now, attempt).or(Some(active)), out);
            }
        }
    }

    /// The report that an attempt does nothing, if that is worth telling.
    pub(crate) fn idle_report(&self, now: Time, attempt: AttemptId) -> Option<Report> {
        let first = self.ranks.get(&attempt.rank(0)).filter(|held| held.is_live())?;
        let since = first.idle_noticed?;
        Some(Report::Idle { attempt, since, quiet_for: now.since(since) })
    }

    /// The report that an attempt of an interactive job does something: the head may have heard the contrary
    /// before the link broke.
    pub(crate) fn activity_report(&self, attempt: AttemptId) -> Option<Report> {
        let first = self.ranks.get(&attempt.rank(0)).filter(|held| held.is_live())?;
        first.activity.as_ref().map(|_| Report::Active(attempt))
    }

    /// Since when all ranks of an attempt here have done nothing, if its first rank runs here and all of them
    /// do nothing.
    fn idle_since(&self, attempt: AttemptId) -> Option<Time> {
        let live = self.ranks_of(attempt).filter(|(_, held)| held.is_live());
        live.map(|(_, held)| self.rank_idle_since(held)).collect::<Option<Vec<Time>>>()?.into_iter().max()
    }

    /// Since when a rank has done nothing: all its GPUs did nothing, or it did nothing with those that it
    /// shares. One without a GPU is watched only if its job is interactive.
    fn rank_idle_since(&self, held: &RankEntry) -> Option<Time> {
        let own = held.activity.as_ref().and_then(ActivityMeter::quiet_since);
        let gpus: Vec<&DeviceId> = held.devices.iter().filter(|it| self.gpus.contains_key(*it)).collect();
        if gpus.is_empty() {
            return own;
        }
        let since = |device: &DeviceId| {
            let of_gpu = held.meters.get(device)?.quiet_since();
            let own = own.filter(|_| self.live_on(device).count() > 1);
            of_gpu.into_iter().chain(own).min()
        };
        gpus.into_iter().map(since).collect::<Option<Vec<Time>>>()?.into_iter().max()
    }
}
