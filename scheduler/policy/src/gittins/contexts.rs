//! The contexts of a job, from the widest to the narrowest: all jobs, those with as many devices, those of
//! its user, of its group, and of its kind; then the sessions and the batches of its group and of its kind.
//!
//! A session is a series of submissions without a gap of more than half an hour; a batch, one without a gap
//! of more than half a minute. All members of an array are submitted at once. Jobs of one group that train
//! different models are of different kinds, but what is submitted together is mostly alike all the same.

use std::collections::BTreeMap;

use cohabit_types::{Span, Time};

use super::counts::BinCounts;
use super::estimates::{EstimateOrigin, EstimateRecords};
use crate::{JobFeatures, JobTraits, PendingJob};

/// The longest gap between two submissions of one session.
const SESSION_GAP: Span = Span::from_secs(30 * 60);

/// The longest gap between two submissions of one batch.
const BATCH_GAP: Span = Span::from_secs(30);

/// Series of one group or kind that may still grow, or contain a job that is submitted late.
const MAX_SERIES: usize = 64;

/// The number of contexts at which those that no job belongs to are dropped for the first time.
const FIRST_SWEEP: usize = 65_536;

/// The number of contexts of a job.
pub(super) const DEPTH: usize = 9;

/// A context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ContextId(u64);

/// The contexts of one job, the widest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JobContexts(pub(super) [ContextId; DEPTH]);

/// What contexts are told apart by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum ContextKey {
    All,
    Devices(u64),
    User(String),
    Group { user: String, group: String, milli: u64 },
    Kind(JobKind),
}

/// Jobs that are alike as far as can be known at submission.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct JobKind {
    pub(super) user: String,
    /// Its group; its name where it has none.
    pub(super) group: String,
    pub(super) model: Option<String>,
    pub(super) batch_size: Option<u64>,
    /// Devices on all nodes together, in thousandths.
    pub(super) milli: u64,
}

/// All contexts with their counts.
#[derive(Debug, Clone, Default)]
pub(super) struct Contexts {
    ids: BTreeMap<ContextKey, ContextId>,
    contexts: BTreeMap<ContextId, Context>,
    /// Of each group and of each kind.
    submissions: BTreeMap<ContextId, Submissions>,
    /// The number of the next context.
    next: u64,
    /// The number of contexts at which the next sweep comes.
    sweep_at: usize,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Context {
    pub(super) counts: BinCounts,
    pub(super) estimates: EstimateRecords,
    /// Ended jobs that were counted.
    ended: u64,
    /// Live jobs that belong to it.
    live: u64,
}

/// The sessions and batches of one group or kind.
#[derive(Debug, Clone, Default)]
struct Submissions {
    sessions: Vec<Series>,
    batches: Vec<Series>,
}

/// Submissions that follow each other closely.
#[derive(Debug, Clone, Copy)]
struct Series {
    first: Time,
    last: Time,
    context: ContextId,
}

impl ContextKey {
    fn of_group(kind: &JobKind) -> ContextKey {
        ContextKey::Group { user: kind.user.clone(), group: kind.group.clone(), milli: kind.milli }
    }
}

impl JobKind {
    pub(super) fn of(traits: &JobTraits, milli: u64) -> JobKind {
        let model = traits.model.as_ref();
        JobKind {
            user: traits.user.clone(),
            group: traits.group.as_ref().unwrap_or(&traits.name).clone(),
            model: model.and_then(|model| model.name.clone()),
            batch_size: model.and_then(|model| model.batch_size),
            milli,
        }
    }

    pub(super) fn of_ended(features: &JobFeatures) -> JobKind {
        JobKind {
            user: features.user.clone(),
            group: features.group.clone(),
            model: features.model.clone(),
            batch_size: features.batch_size,
            milli: features.devices_milli,
        }
    }

    pub(super) fn of_pending(job: &PendingJob) -> JobKind {
        JobKind::of(&job.traits, job.demand.total_milli())
    }
}

impl JobContexts {
    pub(super) const fn group(&self) -> ContextId {
        self.0[3]
    }

    pub(super) const fn kind(&self) -> ContextId {
        self.0[4]
    }

    /// The session of its group: jobs outside it seldom tell anything that is new.
    pub(super) const fn session(&self) -> ContextId {
        self.0[5]
    }

    /// The batch of its kind: its jobs have all contexts in common.
    pub(super) const fn batch(&self) -> ContextId {
        self.0[8]
    }
}

impl Contexts {
    /// The contexts of a job; new ones where it is the first.
    pub(super) fn of(&mut self, kind: JobKind, submitted_at: Time) -> JobContexts {
        let all = self.context(ContextKey::All);
        let devices = self.context(ContextKey::Devices(kind.milli));
        let user = self.context(ContextKey::User(kind.user.clone()));
        let group = self.context(ContextKey::of_group(&kind));
        let kind = self.context(ContextKey::Kind(kind));
        let [group_session, group_batch] = self.submit(group, submitted_at);
        let [kind_session, kind_batch] = self.submit(kind, submitted_at);
        JobContexts([all, devices, user, group, kind, group_session, kind_session, group_batch, kind_batch])
    }

    /// The session and the batch of a submission to a group or kind.
    fn submit(&mut self, of: ContextId, at: Time) -> [ContextId; 2] {
        let mut submissions = self.submissions.remove(&of).unwrap_or_default();
        let session = self.join(&mut submissions.sessions, at, SESSION_GAP);
        let batch = self.join(&mut submissions.batches, at, BATCH_GAP);
        self.submissions.insert(of, submissions);
        [session, batch]
    }

    fn context(&mut self, key: ContextKey) -> ContextId {
        if let Some(known) = self.ids.get(&key) {
            return *known;
        }
        let id = self.open();
        self.ids.insert(key, id);
        id
    }

    fn open(&mut self) -> ContextId {
        let id = ContextId(self.next);
        self.next += 1;
        self.contexts.insert(id, Context::default());
        id
    }

    /// The series that a submission belongs to, by its time.
    fn join(&mut self, all: &mut Vec<Series>, at: Time, gap: Span) -> ContextId {
        let close = |it: &&mut Series| at + gap >= it.first && at <= it.last + gap;
        if let Some(series) = all.iter_mut().rev().find(close) {
            series.first = series.first.min(at);
            series.last = series.last.max(at);
            return series.context;
        }
        if all.len() == MAX_SERIES {
            all.remove(0);
        }
        let context = self.open();
        all.push(Series { first: at, last: at, context });
        context
    }

    /// Counts a job that is alive.
    pub(super) fn join_live(&mut self, job: &JobContexts) {
        self.each(job, |context| context.live += 1);
    }

    /// Counts a job that is no longer alive.
    pub(super) fn leave(&mut self, job: &JobContexts) {
        self.each(job, |context| context.live = context.live.saturating_sub(1));
        if self.contexts.len() >= self.sweep_at.max(FIRST_SWEEP) {
            self.sweep();
            // Twice as many as are left, so that on average a sweep costs little for each new context.
            self.sweep_at = 2 * self.contexts.len();
        }
    }

    /// Drops sessions and batches without live jobs, and then groups and kinds without any.
    fn sweep(&mut self) {
        let contexts = &mut self.contexts;
        let lives = |contexts: &BTreeMap<ContextId, Context>, id: &ContextId| {
            contexts.get(id).is_some_and(|context| context.live > 0)
        };
        for submissions in self.submissions.values_mut() {
            for all in [&mut submissions.sessions, &mut submissions.batches] {
                all.retain(|it| lives(contexts, &it.context));
            }
        }
        self.submissions.retain(|_, it| !it.sessions.is_empty() || !it.batches.is_empty());
        let named: std::collections::BTreeSet<ContextId> = self.ids.values().copied().collect();
        contexts.retain(|id, context| context.live > 0 || named.contains(id));
        // Where most contexts are kinds, those that no live job belongs to go too.
        if contexts.len() > FIRST_SWEEP / 2 {
            contexts.retain(|_, context| context.live > 0);
            self.ids.retain(|_, id| contexts.contains_key(id));
            self.submissions.retain(|of, _| contexts.contains_key(of));
        }
    }

    /// Counts a job that passed the end of a bin.
    pub(super) fn pass(&mut self, job: &JobContexts, bin: usize) {
        self.each(job, |context| context.counts.pass(bin));
    }

    /// Counts a job that ended in a bin.
    pub(super) fn end(&mut self, job: &JobContexts, bin: usize) {
        self.each(job, |context| {
            context.counts.end(bin);
            context.ended += 1;
        });
    }

    /// Counts an estimate of a job.
    pub(super) fn judge(&mut self, job: &JobContexts, source: EstimateOrigin, came_true: bool) {
        self.each(job, |context| context.estimates.count(source, came_true));
    }

    fn each(&mut self, job: &JobContexts, change: impl Fn(&mut Context)) {
        for id in job.0 {
            if let Some(context) = self.contexts.get_mut(&id) {
                change(context);
            }
        }
    }

    /// The contexts of a job, the widest first.
    pub(super) fn of_job(&self, job: &JobContexts) -> [Option<&Context>; DEPTH] {
        job.0.map(|id| self.contexts.get(&id))
    }

    #[cfg(test)]
    pub(super) fn counts<'c>(&'c self, job: &'c JobContexts) -> impl Iterator<Item = &'c BinCounts> {
        self.of_job(job).into_iter().flatten().map(|context| &context.counts)
    }

    /// How many ended jobs of its kind are known, how many of its group, and how many at all.
    pub(super) fn ended(&self, job: &JobContexts) -> [u64; 3] {
        [job.kind(), job.group(), job.0[0]].map(|id| self.contexts.get(&id).map_or(0, |it| it.ended))
    }
}
