//! What the order knows, kept by the changes: beliefs about work times, the jobs that wait, and those that
//! run.
//!
//! A bounded number of jobs is ranked anew with each piece of news, so a plan costs the same however many
//! jobs wait. Nothing is decided here.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use cohabit_fair_share::Line;
use cohabit_types::{JobId, Span, Time};

use super::OrderOptions;
use super::beliefs::{Beliefs, Evidence};
use super::bins;
use super::contexts::{ContextId, JobKind};
use super::estimates::{EstimateOrigin, EstimatedWork};
use super::exclusive_schedule::ExclusiveSchedule;
use super::hazards::Rest;
use super::job::{JobRank, OrderedJob, ReportedWork};
use super::options::WaitPromise;
use super::promised_turns::PromisedTurns;
use super::running::{RunningEntry, RunningJobs};
use super::stop_costs::StopCosts;
use super::waiting::{EntryId, WaitingJobs};
use crate::mapping::Toggle;
use crate::placement::JobOutlook;
use crate::{ClusterChange, EndedRun, PendingJob, Placer, RunPhase, RunningJob, View, ViewChange};

/// Entries of a session that are ranked anew with each of its news, and entries and running jobs that are
/// ranked anew with each plan.
const RANKED_AT_ONCE: usize = 8;

/// A report is believed once a job has run this long.
const BELIEVED_AFTER: Span = Span::from_secs(60);

/// A job that has worked this many times what it first reported is no longer believed: reports of a job that
/// shares devices may be off by as much as its neighbors cost, and one that moves its end away for ever must
/// not stay ahead of all others.
const REFUTED: f64 = 2.0;

/// The knowledge of the order.
#[derive(Debug, Clone)]
pub(super) struct OrderState {
    preempt: Toggle,
    patience: f64,
    patience_base: f64,
    pub(super) beliefs: Beliefs,
    pub(super) waiting: WaitingJobs,
    pub(super) running: RunningJobs,
    pub(super) stop_costs: StopCosts,
    /// What would be without sharing; kept only for placers that ask for it.
    pub(super) exclusive: Option<ExclusiveSchedule>,
    /// Changes with all that [`OrderState::outlook`] depends on, except time.
    pub(super) outlook_version: u64,
    /// When jobs are due by their virtual turns; kept only where that is promised.
    pub(super) promised: Option<PromisedTurns>,
    /// Where the last rotation ended.
    last_entry: Option<EntryId>,
    last_running: Option<JobId>,
}

impl OrderState {
    pub(super) fn new(options: &OrderOptions, exclusive: Option<ExclusiveSchedule>) -> OrderState {
        OrderState {
            preempt: options.preempt,
            patience: options.patience,
            patience_base: options.patience_base.as_secs_f64(),
            beliefs: Beliefs::default(),
            waiting: WaitingJobs::default(),
            running: RunningJobs::default(),
            stop_costs: StopCosts::default(),
            exclusive,
            outlook_version: 0,
            promised: (options.promise == WaitPromise::Turn)
                .then(|| PromisedTurns::new(options.promise_factor)),
            last_entry: None,
            last_running: None,
        }
    }

    /// Updates everything by changes that happened until now.
    pub(super) fn learn(&mut self, view: &View, changes: &[ViewChange], placer: &mut impl Placer) {
        self.outlook_version += 1;
        self.count_passes(view.now);
        placer.learn(view, changes);
        if placer.prepare(view) == ClusterChange::Changed {
            self.refresh_profiles(view, placer);
        }
        for change in changes {
            match change {
                ViewChange::Pending(job) => self.wait(job, view, placer),
                ViewChange::Running(job) => self.run(job, view, placer),
                ViewChange::Gone(job) => self.forget(*job, view.now),
                ViewChange::Node(_) | ViewChange::NodeGone(_) | ViewChange::Shares(_) => {}
            }
        }
        self.learn_promises(view.now, changes);
        self.advance(view.now);
    }

    fn learn_promises(&mut self, now: Time, changes: &[ViewChange]) {
        let (waiting, running) = (&self.waiting, &self.running);
        if let Some(promised) = &mut self.promised {
            let run = |job| running.get(job).map(|entry| &entry.job);
            promised.learn(now, changes, |job| waiting.get(job).or_else(|| run(job)));
        }
    }

    /// Jobs that no node can hold are not in the way of others that are due.
    pub(super) fn set_aside(&mut self, jobs: &[JobId], now: Time) {
        if let Some(promised) = &mut self.promised {
            promised.set_aside(jobs, now);
        }
    }

    /// Counts jobs that ended before any other was seen.
    pub(super) fn recall(&mut self, ended: &[EndedRun]) {
        for run in ended {
            let contexts = self.beliefs.join(JobKind::of_ended(&run.features), run.features.submitted_at);
            let worked = run.worked.as_secs_f64();
            self.beliefs.end(&contexts, 0, worked);
            if let Some(runtime) = run.estimated {
                let source = EstimateOrigin::of(run.features.iterations);
                self.beliefs.judge(&contexts, EstimatedWork::new(runtime, source), worked);
            }
            self.beliefs.leave(&contexts);
        }
    }

    /// Lets time pass until now.
    pub(super) fn advance(&mut self, now: Time) {
        if let Some(promised) = &mut self.promised {
            promised.advance(now);
        }
        self.count_passes(now);
    }

    /// Counts all bins that jobs have passed until now.
    fn count_passes(&mut self, now: Time) {
        // Members of an array cross together: their session is ranked once.
        let mut sessions = BTreeSet::new();
        while let Some(mut entry) = self.running.take_crossing(now) {
            let contexts = entry.job.contexts;
            self.beliefs.pass(&contexts, entry.job.counted);
            entry.job.counted += 1;
            let age = entry.age(now);
            if let Some(refuted) = entry.job.estimated.take_if(|it| it.is_refuted(age)) {
                self.beliefs.judge(&contexts, refuted, age);
            }
            entry.rank = self.rank_of_running(&entry, now);
            self.running.insert(entry);
            sessions.insert(contexts.session());
        }
        sessions.into_iter().for_each(|session| self.rank_session(session));
    }

    /// Ranks those jobs anew that were not ranked for the longest time.
    pub(super) fn rotate(&mut self, now: Time) {
        for entry in self.waiting.next_entries(self.last_entry, RANKED_AT_ONCE) {
            self.rank_entry(entry);
            self.last_entry = Some(entry);
        }
        for job in self.running.next_jobs(self.last_running, RANKED_AT_ONCE) {
            self.rank_running(job, now);
            self.last_running = Some(job);
        }
    }

    fn wait(&mut self, job: &PendingJob, view: &View, placer: &mut impl Placer) {
        let now = view.now;
        let before = match self.running.remove(job.id) {
            Some(stopped) => {
                self.stop_costs.ends(job.id, stopped.job.contexts.kind(), now);
                Some(stopped.job)
            }
            None => self.waiting.remove(job.id),
        };
        let mut ordered = match before {
            Some(known) => known,
            None => self.meet_pending(job, view.line(&job.traits), placer),
        };
        ordered.priority = job.priority;
        ordered.attained = job.attained;
        if ordered.demand != job.demand {
            ordered.demand = job.demand;
            ordered.set_profile(placer, &job.traits);
        }
        let rank = self.rank_of_waiting(&ordered);
        if ordered.patient_until == Time::NEVER && self.promised.is_none() {
            let patience = self.patience * (self.patience_base + rank.rest.typical);
            ordered.patient_until = ordered.submitted_at + Span::from_secs_f64(patience);
        }
        if let Some(exclusive) = &mut self.exclusive {
            let key = (Reverse(job.priority), u128::from(rank.value.to_bits()), job.submitted_at);
            exclusive.arrive(job.id, job.demand.total_milli().next_multiple_of(1_000), key);
        }
        self.waiting.insert(ordered, rank);
    }

    /// A job that was never seen.
    fn meet_pending(&mut self, job: &PendingJob, line: Line, placer: &mut impl Placer) -> OrderedJob {
        let profile = placer.profile(&job.demand, &job.traits);
        let mut ordered = OrderedJob {
            id: job.id,
            line,
            priority: job.priority,
            submitted_at: job.submitted_at,
            demand: job.demand,
            class_key: placer.class_key(&job.demand, &job.traits, &profile),
            estimated: EstimatedWork::of(&profile, &job.traits),
            profile,
            contexts: self.beliefs.join(JobKind::of_pending(job), job.submitted_at),
            preemptible: job.traits.preemptible && self.preempt == Toggle::On,
            limit: job.traits.time_limit.map_or(f64::INFINITY, Span::as_secs_f64),
            attained: job.attained,
            counted: 0,
            reported: ReportedWork::Nothing,
            patient_until: Time::NEVER,
        };
        // Only after a restart of the head: otherwise a job that was never seen has not worked yet.
        for bin in 0..bins::containing(ordered.worked()) {
            self.beliefs.pass(&ordered.contexts, bin);
            ordered.counted += 1;
        }
        ordered
    }

    /// A running job that was never seen.
    fn meet_running(&mut self, job: &RunningJob, line: Line, placer: &mut impl Placer) -> OrderedJob {
        let ordered = self.meet_pending(&pending_before(job), line, placer);
        if let Some(exclusive) = &mut self.exclusive {
            let milli = job.demand.total_milli().next_multiple_of(1_000);
            let key = (Reverse(job.priority), 0, job.submitted_at);
            exclusive.resume(job.id, milli, key, job.started_at);
        }
        ordered
    }

    fn run(&mut self, job: &RunningJob, view: &View, placer: &mut impl Placer) {
        let now = view.now;
        let (mut ordered, in_lane) = match self.running.remove(job.id) {
            Some(entry) => (entry.job, entry.in_lane),
            None => match self.waiting.remove(job.id) {
                Some(ordered) => (ordered, false),
                // Only after a restart of the head: otherwise a running job was pending before.
                None => (self.meet_running(job, view.line(&job.traits), placer), false),
            },
        };
        (ordered.priority, ordered.attained) = (job.priority, job.attained);
        let speed = 1.0 / placer.slowdown(&ordered.profile, &job.placement).max(1.0);
        let rest = Rest::known(0.0);
        let (started_at, phase) = (job.started_at, job.phase);
        let rank = JobRank { value: 0.0, rest };
        let mut entry = RunningEntry { job: ordered, started_at, phase, speed, rank, in_lane };
        if phase == RunPhase::Stopping {
            self.stop_costs.begins(job.id, now);
        }
        self.believe_report(&mut entry, job.reported_end, now);
        entry.rank = self.rank_of_running(&entry, now);
        let contexts = entry.job.contexts;
        self.running.insert(entry);
        self.rank_session(contexts.session());
    }

    /// Takes in what a job says of its end, and counts it once.
    fn believe_report(&mut self, entry: &mut RunningEntry, reported_end: Option<Time>, now: Time) {
        let age = entry.age(now);
        let overrun = |first: f64| age > first * REFUTED + BELIEVED_AFTER.as_secs_f64();
        match (entry.job.reported, reported_end) {
            (ReportedWork::Total { first, .. }, _) if overrun(first) => {
                entry.job.reported = ReportedWork::Refuted;
            }
            (ReportedWork::Refuted, _) | (_, None) => {}
            (known @ (ReportedWork::Nothing | ReportedWork::Total { .. }), Some(end)) => {
                if now.since(entry.started_at) < BELIEVED_AFTER {
                    return;
                }
                let latest = age + end.since(now).as_secs_f64() * entry.speed;
                let first = match known {
                    ReportedWork::Total { first, .. } => first,
                    ReportedWork::Nothing | ReportedWork::Refuted => {
                        self.beliefs.end(&entry.job.contexts, entry.job.counted, latest);
                        latest
                    }
                };
                entry.job.reported = ReportedWork::Total { first, latest };
            }
        }
    }

    /// A job is no longer alive, or may not start for a reason of its own. Whatever its end, it worked that
    /// long.
    fn forget(&mut self, job: JobId, now: Time) {
        self.stop_costs.forget(job);
        let gone = match self.running.remove(job) {
            Some(entry) => {
                if let Some(exclusive) = &mut self.exclusive {
                    exclusive.end(job, entry.age(now));
                }
                if let Some(estimate) = entry.job.estimated {
                    self.beliefs.judge(&entry.job.contexts, estimate, entry.age(now));
                }
                if entry.job.reported == ReportedWork::Nothing {
                    self.beliefs.end(&entry.job.contexts, entry.job.counted, entry.age(now));
                    self.rank_session(entry.job.contexts.session());
                }
                Some(entry.job)
            }
            None => {
                if let Some(exclusive) = &mut self.exclusive {
                    exclusive.forget(job);
                }
                self.waiting.remove(job)
            }
        };
        if let Some(gone) = gone {
            self.beliefs.leave(&gone.contexts);
        }
    }

    /// On a changed cluster, the profiles of known jobs may change.
    fn refresh_profiles(&mut self, view: &View, placer: &mut impl Placer) {
        for job in view.pending.values() {
            let Some(mut ordered) = self.waiting.remove(job.id) else { continue };
            ordered.set_profile(placer, &job.traits);
            let rank = self.rank_of_waiting(&ordered);
            if let Some(promised) = &mut self.promised {
                promised.revise(&ordered);
            }
            self.waiting.insert(ordered, rank);
        }
        for job in view.running.values() {
            let Some(known) = self.running.job_mut(job.id) else { continue };
            known.set_profile(placer, &job.traits);
            if let Some(promised) = &mut self.promised {
                promised.revise(known);
            }
        }
    }

    /// Ranks the newest entries of a session anew.
    fn rank_session(&mut self, session: ContextId) {
        for entry in self.waiting.newest_of_session(session, RANKED_AT_ONCE) {
            self.rank_entry(entry);
        }
    }

    fn rank_entry(&mut self, entry: EntryId) {
        if let Some(rank) = self.waiting.front(entry).map(|job| self.rank_of_waiting(job)) {
            self.waiting.update(entry, rank);
        }
    }

    fn rank_running(&mut self, job: JobId, now: Time) {
        let rank = self.running.get(job).map(|entry| self.rank_of_running(entry, now));
        rank.into_iter().for_each(|rank| self.running.set_rank(job, rank));
    }

    fn rank_of_waiting(&self, job: &OrderedJob) -> JobRank {
        job.rank(self.rest(job, job.worked(), job.worked() + job.limit))
    }

    fn rank_of_running(&self, entry: &RunningEntry, now: Time) -> JobRank {
        entry.job.rank(self.rest(&entry.job, entry.age(now), entry.limit()))
    }

    fn rest(&self, job: &OrderedJob, age: f64, limit: f64) -> Rest {
        match job.reported {
            ReportedWork::Total { latest, .. } => Rest::known((latest - age).max(0.0)),
            ReportedWork::Nothing | ReportedWork::Refuted => {
                self.beliefs.rest(&job.contexts, job.estimated, age, limit)
            }
        }
    }

    /// Prepares [`OrderState::outlook`] for the jobs that wait now.
    pub(super) fn prepare_outlooks(&mut self) {
        self.outlook_version += 1;
        if let Some(exclusive) = &mut self.exclusive {
            exclusive.sum_waiting();
        }
    }

    /// What to expect of a job that has worked for `age` seconds, where the order knows what would be without
    /// sharing. `usual_rest` is that of running jobs, in seconds.
    pub(super) fn outlook(
        &self,
        job: &OrderedJob,
        age: f64,
        rest: Rest,
        usual_rest: f64,
        now: Time,
    ) -> Option<JobOutlook> {
        let exclusive = self.exclusive.as_ref()?;
        let ends_in = exclusive.ends_in(job.id, age + rest.typical, usual_rest, now);
        let since_submission = now.since(job.submitted_at);
        Some(JobOutlook {
            rest: Span::from_secs_f64(rest.typical),
            submitted_at: job.submitted_at,
            completion_without_sharing: since_submission
                + Span::from_secs_f64(ends_in.unwrap_or(rest.typical)),
        })
    }

    /// The device-seconds that running jobs of the lane are expected to need yet.
    pub(super) fn lane_commitment(&self) -> f64 {
        let in_lane = self.running.in_lane();
        in_lane.map(|entry| entry.job.devices() * entry.rank.rest.typical).sum()
    }

    /// The device-seconds that a waiting job is expected to need.
    pub(super) fn expected_device_seconds(&self, job: &OrderedJob) -> f64 {
        self.waiting.entry_of(job.id).map_or(0.0, |entry| job.devices() * entry.rank.rest.typical)
    }

    pub(super) fn evidence(&self, job: &OrderedJob) -> Evidence {
        job.evidence(self.beliefs.evidence(&job.contexts, job.estimated))
    }
}

/// The job as it was before it started.
fn pending_before(job: &RunningJob) -> PendingJob {
    PendingJob {
        id: job.id,
        priority: job.priority,
        submitted_at: job.submitted_at,
        eligible_at: job.started_at,
        demand: job.demand,
        attained: job.attained,
        traits: job.traits.clone(),
    }
}
