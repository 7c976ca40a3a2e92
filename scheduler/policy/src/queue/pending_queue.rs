//! Pending jobs in order, grouped into classes that need the same.
//!
//! Where one job does not fit, no other job of its class does, so a walk through the queue closes the class
//! and skips the rest of it: its cost grows with the classes and with the jobs that start, not with the jobs
//! that wait.

use std::collections::{BTreeMap, BTreeSet, btree_set};
use std::iter::Peekable;
use std::ops::Bound;

use std::cmp::Reverse;

use cohabit_types::{JobId, Time};

use crate::ClassKey;

/// A class of jobs, numbered in the order in which classes appear. A class that was empty gets a new number
/// when it comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClassId(u64);

/// The order of most policies: larger priorities first, then the smaller measure, then the earlier
/// submission.
pub(crate) type PriorityKey = (Reverse<i32>, u128, Time);

/// The queue; the smaller its key, the earlier a job.
#[derive(Debug, Clone)]
pub(crate) struct PendingQueue<K> {
    class_of: BTreeMap<ClassKey, ClassId>,
    classes: BTreeMap<ClassId, Class<K>>,
    /// The first job of each class, by key.
    fronts: BTreeSet<(K, JobId, ClassId)>,
    entries: BTreeMap<JobId, (ClassId, K)>,
    /// The number of the next class.
    next: u64,
}

/// The jobs of one class; never empty between two calls.
#[derive(Debug, Clone)]
struct Class<K> {
    class_key: ClassKey,
    jobs: BTreeSet<(K, JobId)>,
}

/// A job in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueueEntry<K> {
    /// The job.
    pub(crate) job: JobId,
    /// Its key.
    pub(crate) key: K,
    /// Its class.
    pub(crate) class: ClassId,
}

impl<K> Default for PendingQueue<K> {
    fn default() -> PendingQueue<K> {
        PendingQueue {
            class_of: BTreeMap::new(),
            classes: BTreeMap::new(),
            fronts: BTreeSet::new(),
            entries: BTreeMap::new(),
            next: 0,
        }
    }
}

impl<K: Ord + Copy> PendingQueue<K> {
    /// Inserts a job into its class; a job that is in the queue already moves.
    pub(crate) fn insert_with_class(&mut self, job: JobId, class_key: ClassKey, key: K) {
        self.remove(job);
        let class = match self.class_of.get(&class_key) {
            Some(class) => *class,
            None => self.open_class(class_key),
        };
        self.change(class, |jobs| jobs.insert((key, job)));
        self.entries.insert(job, (class, key));
    }

    fn open_class(&mut self, class_key: ClassKey) -> ClassId {
        let id = ClassId(self.next);
        self.next += 1;
        self.class_of.insert(class_key.clone(), id);
        self.classes.insert(id, Class { class_key, jobs: BTreeSet::new() });
        id
    }

    /// Removes a job; returns its key, if it was there.
    pub(crate) fn remove(&mut self, job: JobId) -> Option<K> {
        let (class, key) = self.entries.remove(&job)?;
        self.change(class, |jobs| jobs.remove(&(key, job)));
        Some(key)
    }

    /// Changes the jobs of a class, and keeps the front jobs and the list of classes in step.
    fn change(&mut self, id: ClassId, change: impl FnOnce(&mut BTreeSet<(K, JobId)>) -> bool) {
        let Some(class) = self.classes.get_mut(&id) else { return };
        let before = class.jobs.first().copied();
        change(&mut class.jobs);
        let after = class.jobs.first().copied();
        if after.is_none()
            && let Some(class) = self.classes.remove(&id)
        {
            self.class_of.remove(&class.class_key);
        }
        if before != after {
            before.map(|(key, job)| self.fronts.remove(&(key, job, id)));
            self.fronts.extend(after.map(|(key, job)| (key, job, id)));
        }
    }

    /// The key of a job.
    #[must_use]
    pub(crate) fn key(&self, job: JobId) -> Option<K> {
        self.entries.get(&job).map(|(_, key)| *key)
    }

    /// How many jobs wait.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no job waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The first job of each class, in their order.
    pub(crate) fn fronts(&self) -> impl Iterator<Item = QueueEntry<K>> {
        self.fronts.iter().map(|(key, job, class)| QueueEntry { job: *job, key: *key, class: *class })
    }

    /// The next job of the same class.
    pub(crate) fn behind(&self, entry: &QueueEntry<K>) -> Option<QueueEntry<K>> {
        let behind = (Bound::Excluded((entry.key, entry.job)), Bound::Unbounded);
        let (key, job) = self.classes.get(&entry.class)?.jobs.range(behind).next()?;
        Some(QueueEntry { job: *job, key: *key, class: entry.class })
    }

    /// All jobs in order, for a walk that may close classes.
    #[must_use]
    pub(crate) fn walk(&self) -> Walk<'_, K> {
        Walk { queue: self, fronts: self.fronts.iter().peekable(), further: BTreeSet::new(), last: None }
    }
}

/// A walk through a queue.
#[derive(Debug, Clone)]
pub(crate) struct Walk<'q, K> {
    queue: &'q PendingQueue<K>,
    /// The first jobs of the classes that the walk has not reached.
    fronts: Peekable<btree_set::Iter<'q, (K, JobId, ClassId)>>,
    /// The next job of each open class that the walk has reached.
    further: BTreeSet<(K, JobId, ClassId)>,
    /// The current job; its class may still be closed.
    last: Option<QueueEntry<K>>,
}

impl<K: Ord + Copy> Walk<'_, K> {
    /// Skips all further jobs of the current job's class.
    pub(crate) const fn close(&mut self) {
        self.last = None;
    }

    fn earliest(&mut self) -> Option<(K, JobId, ClassId)> {
        let front = self.fronts.peek().copied().copied();
        match (front, self.further.first()) {
            (Some(front), Some(further)) if *further < front => self.further.pop_first(),
            (Some(_), _) => self.fronts.next().copied(),
            (None, _) => self.further.pop_first(),
        }
    }
}

impl<K: Ord + Copy> Iterator for Walk<'_, K> {
    type Item = QueueEntry<K>;

    fn next(&mut self) -> Option<QueueEntry<K>> {
        let next = self.last.take().and_then(|last| self.queue.behind(&last));
        self.further.extend(next.map(|QueueEntry { job, key, class }| (key, job, class)));
        let (key, job, class) = self.earliest()?;
        self.last = Some(QueueEntry { job, key, class });
        self.last
    }
}
