//! The jobs that wait, in the order of their ranks.
//!
//! Jobs of one batch that need the same and never ran have one rank and form one entry; a job that was
//! stopped is an entry of its own. So news of a batch moves one entry, however many jobs it has.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use cohabit_fair_share::Turns;
use cohabit_types::{JobId, Qos, Span, Time};

use super::bins;
use super::contexts::ContextId;
use super::job::{JobRank, OrderedJob};
use crate::queue::{PriorityKey, QueuedJob, WaitingDemand};
use crate::{ClassKey, PendingQueue, View};

/// The number of an entry; later ones are larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EntryId(u64);

/// What jobs of one entry have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum EntryKey {
    Batch {
        batch: ContextId,
        class_key: ClassKey,
        priority: i32,
        preemptible: bool,
        qos: Qos,
        limit: Option<Span>,
        /// The bin of its estimated work time.
        estimated: Option<usize>,
    },
    Stopped(JobId),
}

/// Jobs with one rank.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    key: EntryKey,
    session: ContextId,
    class_key: ClassKey,
    pub(super) rank: JobRank,
    /// By submission.
    members: BTreeSet<(Time, JobId)>,
    /// The time in the list of overdue entries.
    overdue_at: Time,
}

/// All jobs that wait.
#[derive(Debug, Clone, Default)]
pub(super) struct WaitingJobs {
    jobs: BTreeMap<JobId, OrderedJob>,
    entry_of: BTreeMap<JobId, EntryId>,
    by_key: BTreeMap<EntryKey, EntryId>,
    entries: BTreeMap<EntryId, Entry>,
    by_session: BTreeMap<ContextId, BTreeSet<EntryId>>,
    /// The first job of each entry.
    pub(super) queue: PendingQueue<PriorityKey>,
    /// Entries by the time from which their first job has waited too long.
    overdue: BTreeSet<(Time, EntryId)>,
    /// Jobs that need no device.
    without_devices: usize,
    /// What the jobs of each user would hold.
    demand: WaitingDemand,
    next: u64,
}

impl Entry {
    /// Its jobs, the earliest submission first.
    pub(super) fn members(&self) -> impl Iterator<Item = JobId> {
        self.members.iter().map(|(_, job)| *job)
    }

    /// Its job behind this one; the first where there is none.
    pub(super) fn member_after(&self, last: Option<(Time, JobId)>) -> Option<(Time, JobId)> {
        let behind = last.map_or(Bound::Unbounded, Bound::Excluded);
        self.members.range((behind, Bound::Unbounded)).next().copied()
    }
}

impl WaitingJobs {
    /// Adds a job with this rank.
    pub(super) fn insert(&mut self, job: OrderedJob, rank: JobRank) {
        let key = EntryKey::of(&job);
        let id = match self.by_key.get(&key) {
            Some(id) => *id,
            None => self.open(key, &job, rank),
        };
        self.change_members(id, |members| members.insert((job.submitted_at, job.id)));
        self.without_devices += usize::from(job.profile.milli == 0);
        self.demand.add(job.party(), &job.demand);
        self.entry_of.insert(job.id, id);
        self.jobs.insert(job.id, job);
        self.update(id, rank);
    }

    fn open(&mut self, key: EntryKey, job: &OrderedJob, rank: JobRank) -> EntryId {
        let id = EntryId(self.next);
        self.next += 1;
        let session = job.contexts.session();
        let entry = Entry {
            key: key.clone(),
            session,
            class_key: job.class_key.clone(),
            rank,
            members: BTreeSet::new(),
            overdue_at: Time::NEVER,
        };
        self.by_key.insert(key, id);
        self.by_session.entry(session).or_default().insert(id);
        self.entries.insert(id, entry);
        id
    }

    pub(super) fn remove(&mut self, job: JobId) -> Option<OrderedJob> {
        let removed = self.jobs.remove(&job)?;
        self.without_devices -= usize::from(removed.profile.milli == 0);
        self.demand.remove(removed.party(), &removed.demand);
        let id = self.entry_of.remove(&job)?;
        self.change_members(id, |members| members.remove(&(removed.submitted_at, job)));
        let entry = &self.entries[&id];
        if entry.members.is_empty() {
            self.close(id);
        } else {
            let rank = entry.rank;
            self.update(id, rank);
        }
        Some(removed)
    }

    fn close(&mut self, id: EntryId) {
        let Some(entry) = self.entries.remove(&id) else { return };
        self.by_key.remove(&entry.key);
        self.overdue.remove(&(entry.overdue_at, id));
        if let Some(entries) = self.by_session.get_mut(&entry.session) {
            entries.remove(&id);
            if entries.is_empty() {
                self.by_session.remove(&entry.session);
            }
        }
    }

    /// Changes the members of an entry; its first one stands for it in the queue.
    fn change_members(&mut self, id: EntryId, change: impl FnOnce(&mut BTreeSet<(Time, JobId)>) -> bool) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        if let Some((_, first)) = entry.members.first() {
            self.queue.remove(*first);
        }
        change(&mut entry.members);
    }

    /// Puts an entry with members in its place.
    pub(super) fn update(&mut self, id: EntryId, rank: JobRank) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let Some((_, first)) = entry.members.first().copied() else { return };
        let job = &self.jobs[&first];
        entry.rank = rank;
        let key = (Reverse(job.priority), u128::from(rank.value.to_bits()), job.submitted_at);
        match self.queue.key(first) {
            Some(before) if before == key => {}
            Some(_) => self.queue.change_key(first, key),
            None => {
                let queued = QueuedJob { id: first, line: job.line, demand: job.demand };
                self.queue.insert(&queued, entry.class_key.clone(), key);
            }
        }
        if self.overdue.contains(&(job.overdue_at(), id)) {
            return;
        }
        self.overdue.remove(&(entry.overdue_at, id));
        entry.overdue_at = job.overdue_at();
        self.overdue.insert((entry.overdue_at, id));
    }

    /// The turns of the users of whom jobs wait.
    pub(super) fn turns(&self, view: &View) -> Option<Turns> {
        self.queue.turns_for(view, &self.demand)
    }

    pub(super) fn get(&self, job: JobId) -> Option<&OrderedJob> {
        self.jobs.get(&job)
    }

    /// The number of the entry of a job that waits.
    pub(super) fn entry_id_of(&self, job: JobId) -> Option<EntryId> {
        self.entry_of.get(&job).copied()
    }

    /// The entry of a job that waits.
    pub(super) fn entry_of(&self, job: JobId) -> Option<&Entry> {
        self.entries.get(&self.entry_id_of(job)?)
    }

    /// The first job of an entry.
    pub(super) fn front(&self, id: EntryId) -> Option<&OrderedJob> {
        let (_, first) = self.entries.get(&id)?.members.first()?;
        self.jobs.get(first)
    }

    /// The newest entries of a session, at most `most`.
    pub(super) fn newest_of_session(&self, session: ContextId, most: usize) -> Vec<EntryId> {
        let entries = self.by_session.get(&session);
        entries.into_iter().flat_map(|entries| entries.iter().rev().take(most).copied()).collect()
    }

    /// The `most` entries after this one, and from the first on again.
    pub(super) fn next_entries(&self, after: Option<EntryId>, most: usize) -> Vec<EntryId> {
        let behind = after.map_or(Bound::Unbounded, Bound::Excluded);
        let further = self.entries.range((behind, Bound::Unbounded));
        let all = further.chain(self.entries.iter()).map(|(id, _)| *id);
        all.take(most.min(self.entries.len())).collect()
    }

    /// The first jobs of the entries that have waited too long, the longest overdue first.
    pub(super) fn overdue(&self, now: Time) -> impl Iterator<Item = &OrderedJob> {
        let due = self.overdue.iter().take_while(move |(at, _)| *at <= now);
        due.filter_map(|(_, id)| self.front(*id))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// How many jobs wait for devices.
    pub(super) fn with_devices(&self) -> usize {
        self.jobs.len() - self.without_devices
    }

    /// Whether a job waits that needs no device.
    pub(super) const fn has_jobs_without_devices(&self) -> bool {
        self.without_devices > 0
    }
}

impl EntryKey {
    fn of(job: &OrderedJob) -> EntryKey {
        if job.attained.held > Span::ZERO {
            return EntryKey::Stopped(job.id);
        }
        EntryKey::Batch {
            batch: job.contexts.batch(),
            class_key: job.class_key.clone(),
            priority: job.priority,
            preemptible: job.preemptible,
            qos: job.line.qos,
            estimated: job.estimated.map(|it| bins::containing(it.seconds)),
            limit: job.limit.is_finite().then(|| Span::from_secs_f64(job.limit)),
        }
    }
}
