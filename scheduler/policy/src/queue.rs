//! Pending jobs in an order of precedence, gathered into classes that need the same.
//!
//! Where one job finds no room, no other job of its class can find any either, so a walk through the queue
//! closes the class and never looks at the rest of it: its cost grows with the classes and with what starts,
//! not with the jobs that wait.

use std::collections::{BTreeMap, BTreeSet, btree_set};
use std::iter::Peekable;
use std::ops::Bound;

use cohabit_types::{Demand, JobId, LaunchMode};

use crate::Profile;
use crate::mapping::GraphSignature;

/// Jobs with the same needs, numbered in the order in which they were first seen. A class that has run empty
/// gets a new number when it comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClassId(u64);

/// What jobs of one class have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClassKey {
    /// Devices, cores and memory: they find room or they do not.
    Room(Demand),
    /// These for about as long: for at least 2 to the power of this many microseconds, and less than twice
    /// that.
    RoomFor(Demand, u32),
    /// These with the same graph: a place is equally good for all of them.
    Place(Demand, GraphSignature),
    /// The same, where each rank can be put on a chosen device.
    Ranks(Demand, GraphSignature),
    /// A part of a device, for what is trained under this number: who else may be there hangs on it.
    Beside(Demand, u64),
}

impl ClassKey {
    /// What decides how good a place is.
    #[must_use]
    pub fn of(demand: &Demand, profile: &Profile) -> ClassKey {
        match (&profile.graph, profile.launch) {
            (None, _) => ClassKey::Room(*demand),
            (Some(graph), LaunchMode::PerNode) => ClassKey::Place(*demand, graph.signature()),
            (Some(graph), LaunchMode::PerGpu) => ClassKey::Ranks(*demand, graph.signature()),
        }
    }
}

/// The queue; the smaller a key, the earlier its job.
#[derive(Debug, Clone)]
pub struct PendingQueue<K> {
    class_of: BTreeMap<ClassKey, ClassId>,
    classes: BTreeMap<ClassId, Class<K>>,
    /// The first job of each class, by key.
    fronts: BTreeSet<(K, JobId, ClassId)>,
    entries: BTreeMap<JobId, (ClassId, K)>,
    /// The number of the next class.
    next: u64,
}

/// The jobs of one class; never empty.
#[derive(Debug, Clone)]
struct Class<K> {
    needs: ClassKey,
    jobs: BTreeSet<(K, JobId)>,
}

/// The turn of one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueEntry<K> {
    /// Whose.
    pub job: JobId,
    /// By which key.
    pub key: K,
    /// Its class.
    pub class: ClassId,
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
    /// Puts a job in its place, in the class of jobs for which a place is equally good; a job that is there
    /// already gets a new one.
    pub fn insert(&mut self, job: JobId, demand: &Demand, profile: &Profile, key: K) {
        self.insert_with_class(job, ClassKey::of(demand, profile), key);
    }

    /// Puts a job in its place, in the class of jobs that need the same.
    pub fn insert_with_class(&mut self, job: JobId, needs: ClassKey, key: K) {
        self.remove(job);
        let class = *self.class_of.entry(needs).or_insert(ClassId(self.next));
        self.next = self.next.max(class.0 + 1);
        self.change(class, needs, |jobs| jobs.insert((key, job)));
        self.entries.insert(job, (class, key));
    }

    /// Takes a job out; its key, if it was there.
    pub fn remove(&mut self, job: JobId) -> Option<K> {
        let (class, key) = self.entries.remove(&job)?;
        let needs = self.classes[&class].needs;
        self.change(class, needs, |jobs| jobs.remove(&(key, job)));
        Some(key)
    }

    /// Changes the jobs of a class, and its front with them.
    fn change(
        &mut self,
        id: ClassId,
        needs: ClassKey,
        change: impl FnOnce(&mut BTreeSet<(K, JobId)>) -> bool,
    ) {
        let class = self.classes.entry(id).or_insert_with(|| Class { needs, jobs: BTreeSet::new() });
        let before = class.jobs.first().copied();
        change(&mut class.jobs);
        let after = class.jobs.first().copied();
        if after.is_none() {
            self.classes.remove(&id);
            self.class_of.remove(&needs);
        }
        if before != after {
            before.map(|(key, job)| self.fronts.remove(&(key, job, id)));
            self.fronts.extend(after.map(|(key, job)| (key, job, id)));
        }
    }

    /// The key of a job.
    #[must_use]
    pub fn key(&self, job: JobId) -> Option<K> {
        self.entries.get(&job).map(|(_, key)| *key)
    }

    /// How many jobs of a class wait.
    #[must_use]
    pub fn count_class(&self, class: ClassId) -> usize {
        self.classes.get(&class).map_or(0, |class| class.jobs.len())
    }

    /// How many jobs wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none does.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The first job of each class, in their order.
    pub fn fronts(&self) -> impl Iterator<Item = QueueEntry<K>> {
        self.fronts.iter().map(|(key, job, class)| QueueEntry { job: *job, key: *key, class: *class })
    }

    /// All jobs in their order, for a walk that may close classes.
    #[must_use]
    pub fn walk(&self) -> Walk<'_, K> {
        Walk { queue: self, fronts: self.fronts.iter().peekable(), further: BTreeSet::new(), last: None }
    }
}

/// A walk through a queue.
#[derive(Debug, Clone)]
pub struct Walk<'q, K> {
    queue: &'q PendingQueue<K>,
    /// The first jobs of the classes whose turn has not come yet.
    fronts: Peekable<btree_set::Iter<'q, (K, JobId, ClassId)>>,
    /// The next job of each class whose turn has come, and that is open.
    further: BTreeSet<(K, JobId, ClassId)>,
    /// The job whose turn it was; its class may still be closed.
    last: Option<QueueEntry<K>>,
}

impl<K: Ord + Copy> Walk<'_, K> {
    /// No more jobs of the class whose turn it was.
    pub const fn close(&mut self) {
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
        if let Some(QueueEntry { job, key, class }) = self.last.take() {
            let behind = (Bound::Excluded((key, job)), Bound::Unbounded);
            let next = self.queue.classes[&class].jobs.range(behind).next();
            self.further.extend(next.map(|(key, job)| (*key, *job, class)));
        }
        let (key, job, class) = self.earliest()?;
        self.last = Some(QueueEntry { job, key, class });
        self.last
    }
}
