//! Figures for metrics, kept up to date by changes: nothing here walks over all jobs.
//!
//! They are volatile. Counters begin with each start of the head, so a replay adds nothing to them.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::{
    DeviceHolder, DeviceId, DeviceUsage, Figures, JobId, NodeId, Outcome, RankId, RankUsage, Share, Span,
    StopReason, Time, UsageRecord, UserFigures,
};

use crate::figure_counters::{FigureCounters, MeasuredShare};
use crate::head::Head;
use crate::interface::Effect;
use crate::job::{Attempt, EndedAttempt};
use crate::terminal_state::TerminalState;
use crate::transition::Transition;

/// Shorter attempts count as this long: a job of a second that waits for a minute has not been slowed down
/// sixtyfold in any sense that matters.
const SHORTEST_RUN: Span = Span::from_secs(10);
/// How far the clocks of a worker and the head may run apart while a rank runs.
const CLOCK_SLACK: Span = Span::from_secs(60);
/// The most records of live ranks in one answer.
const MOST_RECORDS: usize = 2_048;

impl Transition<'_> {
    /// The head starts: what was counted before is of its predecessor.
    pub(crate) fn begin_figures(&mut self) {
        self.head.volatile.figures = FigureCounters::default();
    }

    /// A job gets its devices.
    pub(crate) fn count_start(&mut self, id: JobId) {
        if let Some(waiting) = self.head.jobs.get(&id).and_then(|job| job.waiting()) {
            let waited = self.now.since(waiting.eligible_at);
            self.head.volatile.figures.wait.observe(waited.as_secs_f64());
            self.account_start(id, waited);
        }
    }

    /// The live attempt of a job has ended.
    pub(crate) fn count_attempt(&mut self, id: JobId, ended: &EndedAttempt) {
        self.account_attempt(id, ended);
        let user = self.head.submissions.get(&id.number).map(|submission| submission.user.clone());
        let (attempt, run) = (&ended.attempt, ended.at.since(ended.attempt.started_at).as_secs_f64());
        let counted = self.head.counted_time(attempt, ended.at);
        let figures = &mut self.head.volatile.figures;
        *figures.attempts.entry(how_ended(ended)).or_default() += 1;
        figures.run.observe(run);
        if ended.as_ref().effective_stop() == Some(StopReason::MpsFault)
            && let Some(first) = attempt.ranks.first()
        {
            figures.node(&first.node_name).mps_faults += 1;
        }
        let held = held_devices(attempt) * counted;
        if let Some(user) = user.filter(|_| held > 0.0) {
            let time = figures.gpu_time_of(&user);
            time.held += held;
            if is_lost(ended) {
                time.lost += held;
            }
        }
        for rank in 0..attempt.ranks.len() {
            figures.measured.remove(&id.attempt(attempt.number).rank(rank as u32));
        }
    }

    /// A job has ended in this state.
    pub(crate) fn count_end(&mut self, id: JobId, state: TerminalState) {
        self.account_end(id, state);
        if state != TerminalState::Completed {
            return;
        }
        let Some(submission) = self.head.submissions.get(&id.number) else { return };
        let Some(last) = self.head.jobs.get(&id).and_then(|job| job.ended_attempts.last()) else { return };
        let run = last.at.since(last.attempt.started_at).max(SHORTEST_RUN).as_secs_f64();
        let waited = last.attempt.started_at.since(submission.submitted_at).as_secs_f64();
        self.head.volatile.figures.slowdown.observe((waited + run) / run);
    }

    /// Live ranks of this node tell what they have done so far.
    pub(crate) fn note_usage(&mut self, node: NodeId, usage: Vec<RankUsage>) {
        for RankUsage { rank, devices } in usage {
            if self.head.is_live(rank, node)
                && let Some(holder) = self.head.holder(rank)
            {
                let devices = holder.believed(devices, self.now);
                self.head.volatile.figures.measure(&holder.user, holder.measured_share(), rank, devices);
            }
        }
    }

    /// A live rank has ended and told what it did with its GPUs: for the counters, and for the history.
    pub(crate) fn record_usage(&mut self, rank: RankId, devices: Vec<DeviceUsage>) {
        let Some(holder) = self.head.holder(rank).filter(|_| !devices.is_empty()) else { return };
        let devices = holder.believed(devices, self.now);
        self.head.volatile.figures.measure(&holder.user, holder.measured_share(), rank, devices.clone());
        for usage in devices {
            let record = holder.record(rank, usage, self.now, false);
            self.effect(Effect::RecordUsage(Box::new(record)));
        }
    }
}

/// Who holds what a rank holds.
struct RankHolder {
    devices: Vec<DeviceId>,
    placed_at: Time,
    user: String,
    node: String,
    share: Share,
    /// Whether it has run since before the head started.
    is_earlier: bool,
}

impl RankHolder {
    /// What a worker can know: of the rank's devices, each once, and for no longer than the rank has held it.
    fn believed(&self, reported: Vec<DeviceUsage>, now: Time) -> Vec<DeviceUsage> {
        let of_device = |device: &DeviceId| reported.iter().find(|it| it.device == *device).cloned();
        let mut believed: Vec<DeviceUsage> = self.devices.iter().filter_map(of_device).collect();
        for usage in &mut believed {
            usage.held = usage.held.min(now.since(self.placed_at) + CLOCK_SLACK);
            usage.bound();
        }
        believed
    }

    fn measured_share(&self) -> MeasuredShare {
        MeasuredShare { part: self.share.as_f64(), is_earlier: self.is_earlier }
    }

    fn record(&self, rank: RankId, usage: DeviceUsage, at: Time, live: bool) -> UsageRecord {
        let RankHolder { user, node, share, .. } = self;
        UsageRecord { rank, user: user.clone(), node: node.clone(), share: *share, at, live, usage }
    }
}

impl Head {
    /// Who holds what this rank of a live attempt holds.
    fn holder(&self, rank: RankId) -> Option<RankHolder> {
        let id = rank.attempt.job;
        let attempt = self.jobs.get(&id)?.live_attempt().filter(|it| it.number == rank.attempt.attempt)?;
        let known = attempt.ranks.get(rank.rank as usize)?;
        let share = attempt.placement.part_on(known.node)?.share;
        let user = self.submissions.get(&id.number)?.user.clone();
        let is_earlier = self.is_of_earlier_life(attempt);
        let (devices, placed_at) = (known.devices.clone(), attempt.started_at);
        Some(RankHolder { devices, placed_at, user, node: known.node_name.clone(), share, is_earlier })
    }

    /// What the live attempts of these jobs have done with their GPUs so far, as last reported: at most
    /// 2,048 records.
    pub fn live_usage(&self, jobs: &BTreeSet<JobId>, now: Time) -> Vec<UsageRecord> {
        let of_job = |job: &JobId| {
            let ranks = job.attempt(0).rank(0)..=job.attempt(u32::MAX).rank(u32::MAX);
            self.volatile.figures.measured.range(ranks)
        };
        let records = |(rank, devices): (&RankId, &Vec<DeviceUsage>)| {
            let holder = self.holder(*rank);
            let record = |usage: &DeviceUsage| Some(holder.as_ref()?.record(*rank, usage.clone(), now, true));
            devices.iter().filter_map(record).collect::<Vec<_>>()
        };
        jobs.iter().flat_map(of_job).flat_map(records).take(MOST_RECORDS).collect()
    }

    /// The figures now. The shell adds what it counts itself.
    pub fn figures(&self, now: Time) -> Figures {
        let counters = &self.volatile.figures;
        let holders = self.device_holders();
        let mut users: BTreeMap<String, UserFigures> = BTreeMap::new();
        for (user, jobs) in self.volatile.usage.live_jobs() {
            users.entry(user.to_owned()).or_default().jobs = jobs;
        }
        for (user, time) in &counters.gpu_time {
            users.entry(user.clone()).or_default().gpu_time = *time;
        }
        for (user, held) in self.held_now(now) {
            users.entry(user.to_owned()).or_default().gpu_time.held += held;
        }
        Figures {
            since: self.started_at,
            users,
            oldest_wait: self.oldest_wait().map(|since| now.since(since)),
            attempts: counters.attempts.iter().map(|(how, count)| ((*how).to_owned(), *count)).collect(),
            wait: counters.wait.clone(),
            run: counters.run.clone(),
            slowdown: counters.slowdown.clone(),
            nodes: counters.nodes.clone(),
            holders,
            links: self.nodes.values().filter(|node| node.key().is_some()).count() as u64,
            ..Figures::default()
        }
    }

    /// Since when the job has waited that only waits for room, and longest.
    ///
    /// In the order of submission, so the search is over with the first job that was submitted later than
    /// the longest wait began.
    fn oldest_wait(&self) -> Option<Time> {
        let mut oldest: Option<Time> = None;
        let mut next = self.eligible.first().copied();
        while let Some(id) = next {
            let submission = self.submissions.get(&id.number)?;
            if oldest.is_some_and(|oldest| submission.submitted_at >= oldest) {
                break;
            }
            let since = self.jobs.get(&id)?.waiting().map(|waiting| waiting.eligible_at);
            oldest = oldest.into_iter().chain(since).min();
            next = self.eligible.range(JobId::new(id.number + 1)..).next().copied();
        }
        oldest
    }

    /// Seconds until `end` that an attempt has run since the head started. What was before is no part of its
    /// counters: they would jump with each restart.
    fn counted_time(&self, attempt: &Attempt, end: Time) -> f64 {
        end.since(attempt.started_at.max(self.started_at)).as_secs_f64()
    }

    /// Seconds on devices of each live attempt, with its user.
    fn held_now(&self, now: Time) -> impl Iterator<Item = (&str, f64)> {
        self.jobs_on_devices().into_iter().filter_map(move |id| {
            let attempt = self.jobs.get(&id)?.live_attempt()?;
            let user = &self.submissions.get(&id.number)?.user;
            Some((user.as_str(), held_devices(attempt) * self.counted_time(attempt, now)))
        })
    }

    /// The jobs that hold devices now.
    pub(crate) fn jobs_on_devices(&self) -> BTreeSet<JobId> {
        let jobs = self.nodes.values().flat_map(|node| node.devices.iter().flat_map(|it| &it.jobs));
        jobs.copied().collect()
    }

    fn device_holders(&self) -> Vec<DeviceHolder> {
        let devices =
            self.nodes.iter().flat_map(|(id, node)| node.devices.iter().map(move |it| (id, node, it)));
        let holders = devices.flat_map(|(id, node, device)| {
            device.jobs.iter().filter_map(move |job| {
                let part = self.jobs.get(job)?.live_attempt()?.placement.part_on(*id)?;
                Some(DeviceHolder {
                    node: node.name.clone(),
                    device: device.device.id.clone(),
                    job: *job,
                    user: self.submissions.get(&job.number)?.user.clone(),
                    share: part.share,
                })
            })
        });
        holders.collect()
    }
}

/// Devices that an attempt holds, each times its part.
pub(crate) fn held_devices(attempt: &Attempt) -> f64 {
    attempt.placement.parts.iter().map(|part| part.share.as_f64() * part.devices.len() as f64).sum()
}

/// In one word. A reason to stop counts before what became of the processes.
pub(crate) fn how_ended(ended: &EndedAttempt) -> &'static str {
    match (ended.as_ref().effective_stop(), ended.attempt.first_failed_outcome()) {
        (Some(StopReason::GangBroken) | None, None) => "completed",
        (Some(StopReason::GangBroken) | None, Some(outcome)) => match outcome {
            Outcome::Exited(_) => "exit_code",
            Outcome::Signalled(_) => "signalled",
            Outcome::OutOfGpuMemory { .. } => "gpu_out_of_memory",
            Outcome::OutOfMemory { .. } => "out_of_memory",
            Outcome::NotStarted(_) => "could_not_start",
            Outcome::Lost(_) => "executor_lost",
        },
        (Some(why), _) => why.as_str(),
    }
}

/// Whether an attempt ended through no doing of its job or its user.
pub(crate) fn is_lost(ended: &EndedAttempt) -> bool {
    match ended.as_ref().effective_stop() {
        Some(StopReason::GangBroken) | None => {
            matches!(ended.attempt.first_failed_outcome(), Some(Outcome::Lost(_)))
        }
        Some(why) => why.is_no_fault_of_the_job(),
    }
}
