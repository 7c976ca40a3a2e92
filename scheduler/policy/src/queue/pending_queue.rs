//! Pending jobs in order, grouped into classes that need the same, and into
//! the lines of each user.
//!
//! Where one job does not fit, no other job of its class does, so a walk through the queue closes the class
//! and skips the rest of it: its cost grows with the classes and with the jobs that start, not with the jobs
//! that wait. Without fair share all jobs belong to one user.

use std::collections::{BTreeMap, BTreeSet, btree_set};
use std::iter::Peekable;
use std::ops::Bound;

use std::cmp::Reverse;

use cohabit_fair_share::{Line, Turns};
use cohabit_types::{Demand, JobId, Time};

use super::waiting_demand::WaitingDemand;
use crate::{Action, ClassKey, PendingJob, View};

/// A class of jobs, numbered in the order in which classes appear. A class that was empty gets a new number
/// when it comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClassId(u64);

/// The order of most policies: larger priorities first, then the smaller measure, then the earlier
/// submission.
pub(crate) type PriorityKey = (Reverse<i32>, u128, Time);

/// The queue; the smaller its key, the earlier a job among those of its user.
#[derive(Debug, Clone)]
pub(crate) struct PendingQueue<K> {
    class_of: BTreeMap<ClassKey, ClassId>,
    classes: BTreeMap<ClassId, Class<K>>,
    /// Of each line the first job of each class, by key.
    fronts: BTreeMap<Line, Fronts<K>>,
    entries: BTreeMap<JobId, Place<K>>,
    demand: WaitingDemand,
    /// The number of the next class.
    next: u64,
}

/// First jobs of classes.
type Fronts<K> = BTreeSet<(K, JobId, ClassId)>;

/// The jobs of one class; never empty between two calls.
#[derive(Debug, Clone)]
struct Class<K> {
    class_key: ClassKey,
    /// Those of each line; never empty.
    jobs: BTreeMap<Line, BTreeSet<(K, JobId)>>,
}

/// Where a job is in the queue.
#[derive(Debug, Clone, Copy)]
struct Place<K> {
    line: Line,
    demand: Demand,
    class: ClassId,
    key: K,
}

/// A job that is put into the queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueuedJob {
    pub(crate) id: JobId,
    /// Those with which its turn comes.
    pub(crate) line: Line,
    pub(crate) demand: Demand,
}

impl QueuedJob {
    pub(crate) fn of(job: &PendingJob, view: &View) -> QueuedJob {
        QueuedJob { id: job.id, line: view.line(&job.traits), demand: job.demand }
    }
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
    /// Those of its user with which its turn comes.
    pub(crate) line: Line,
}

impl<K> Default for PendingQueue<K> {
    fn default() -> PendingQueue<K> {
        PendingQueue {
            class_of: BTreeMap::new(),
            classes: BTreeMap::new(),
            fronts: BTreeMap::new(),
            entries: BTreeMap::new(),
            demand: WaitingDemand::default(),
            next: 0,
        }
    }
}

impl<K: Ord + Copy> PendingQueue<K> {
    /// Inserts a job into its class; a job that is in the queue already moves.
    pub(crate) fn insert(&mut self, job: &QueuedJob, class_key: ClassKey, key: K) {
        let QueuedJob { id: job, line, demand } = *job;
        self.remove(job);
        let class = match self.class_of.get(&class_key) {
            Some(class) => *class,
            None => self.open_class(class_key),
        };
        self.change(class, line, |jobs| jobs.insert((key, job)));
        self.entries.insert(job, Place { line, demand, class, key });
        self.demand.add(line.party, &demand);
    }

    /// Moves a job that is in the queue.
    pub(crate) fn change_key(&mut self, job: JobId, key: K) {
        let Some(place) = self.entries.get_mut(&job) else { return };
        let Place { line, class, key: before, .. } = *place;
        place.key = key;
        self.change(class, line, |jobs| jobs.remove(&(before, job)) && jobs.insert((key, job)));
    }

    fn open_class(&mut self, class_key: ClassKey) -> ClassId {
        let id = ClassId(self.next);
        self.next += 1;
        self.class_of.insert(class_key.clone(), id);
        self.classes.insert(id, Class { class_key, jobs: BTreeMap::new() });
        id
    }

    /// Removes a job; returns its key, if it was there.
    pub(crate) fn remove(&mut self, job: JobId) -> Option<K> {
        let Place { line, demand, class, key } = self.entries.remove(&job)?;
        self.demand.remove(line.party, &demand);
        self.change(class, line, |jobs| jobs.remove(&(key, job)));
        Some(key)
    }

    /// Changes the jobs of a line in a class, and keeps the front jobs and the list of classes in step.
    fn change(&mut self, id: ClassId, line: Line, change: impl FnOnce(&mut BTreeSet<(K, JobId)>) -> bool) {
        let Some(class) = self.classes.get_mut(&id) else { return };
        let jobs = class.jobs.entry(line).or_default();
        let before = jobs.first().copied();
        change(jobs);
        let after = jobs.first().copied();
        if after.is_none() {
            class.jobs.remove(&line);
            if class.jobs.is_empty()
                && let Some(class) = self.classes.remove(&id)
            {
                self.class_of.remove(&class.class_key);
            }
        }
        if before != after {
            let fronts = self.fronts.entry(line).or_default();
            before.map(|(key, job)| fronts.remove(&(key, job, id)));
            fronts.extend(after.map(|(key, job)| (key, job, id)));
            if fronts.is_empty() {
                self.fronts.remove(&line);
            }
        }
    }

    /// The key of a job.
    #[must_use]
    pub(crate) fn key(&self, job: JobId) -> Option<K> {
        self.entries.get(&job).map(|place| place.key)
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

    /// The turns of the users of whom jobs wait.
    pub(crate) fn turns(&self, view: &View) -> Option<Turns> {
        self.turns_for(view, &self.demand)
    }

    /// The same where an entry stands for several jobs, which wait for this.
    pub(crate) fn turns_for(&self, view: &View, demand: &WaitingDemand) -> Option<Turns> {
        view.turns(self.fronts.keys().copied(), |party| demand.of(party))
    }

    /// All jobs in order, as `walk` with the turns of this view. Whose turn it is does not matter while only
    /// one line waits, and nothing is kept for others: then the cluster need not be divided.
    pub(crate) fn walk_by_turns(&self, view: &View) -> Walk<'_, K> {
        let keeps_for_others =
            view.fair_shares.as_ref().is_some_and(|shares| shares.table().asks_what_is_given_back());
        match self.fronts.keys().next() {
            Some(line) if self.fronts.len() == 1 && !keeps_for_others => {
                Walk { only: *line, ..self.walk(None) }
            }
            Some(_) | None => self.walk(self.turns(view)),
        }
    }

    /// The first job of each line in each class, those of a line in their order.
    pub(crate) fn fronts(&self) -> impl Iterator<Item = QueueEntry<K>> {
        self.fronts.iter().flat_map(|(line, fronts)| {
            let entry = |(key, job, class): &(K, JobId, ClassId)| QueueEntry {
                job: *job,
                key: *key,
                class: *class,
                line: *line,
            };
            fronts.iter().map(entry)
        })
    }

    /// The next job of the same line in the same class.
    pub(crate) fn behind(&self, entry: &QueueEntry<K>) -> Option<QueueEntry<K>> {
        let behind = (Bound::Excluded((entry.key, entry.job)), Bound::Unbounded);
        let jobs = self.classes.get(&entry.class)?.jobs.get(&entry.line)?;
        let (key, job) = jobs.range(behind).next()?;
        Some(QueueEntry { job: *job, key: *key, ..*entry })
    }

    /// All jobs in order, for a walk that may close classes. Where users take turns, what each start takes has
    /// to be said.
    #[must_use]
    pub(crate) fn walk(&self, turns: Option<Turns>) -> Walk<'_, K> {
        Walk {
            queue: self,
            turns,
            only: Line::default(),
            lines: BTreeMap::new(),
            closed: BTreeSet::new(),
            last: None,
            is_over: false,
        }
    }
}

/// A walk through a queue.
#[derive(Debug, Clone)]
pub(crate) struct Walk<'q, K> {
    queue: &'q PendingQueue<K>,
    /// Whose turn it is; `None` where all jobs belong to one user.
    turns: Option<Turns>,
    /// The line of all jobs, where there are no turns.
    only: Line,
    lines: BTreeMap<Line, LineWalk<'q, K>>,
    closed: BTreeSet<ClassId>,
    /// The current job; its class may still be closed.
    last: Option<QueueEntry<K>>,
    /// Whether no further job comes.
    is_over: bool,
}

/// How far the walk has come with the jobs of one line.
#[derive(Debug, Clone)]
struct LineWalk<'q, K> {
    /// The first jobs of the classes that the walk has not reached.
    fronts: Peekable<btree_set::Iter<'q, (K, JobId, ClassId)>>,
    /// The next job of each open class that the walk has reached.
    further: Fronts<K>,
}

impl<K: Ord + Copy> LineWalk<'_, K> {
    fn earliest(&mut self) -> Option<(K, JobId, ClassId)> {
        let front = self.fronts.peek().copied().copied();
        match (front, self.further.first()) {
            (Some(front), Some(further)) if *further < front => self.further.pop_first(),
            (Some(_), _) => self.fronts.next().copied(),
            (None, _) => self.further.pop_first(),
        }
    }
}

impl<K: Ord + Copy> Walk<'_, K> {
    /// Skips all further jobs of the current job's class.
    pub(crate) fn close(&mut self) {
        self.closed.extend(self.last.take().map(|last| last.class));
    }

    /// Skips all further jobs of the current job's line.
    pub(crate) fn close_line(&mut self) {
        match (&mut self.turns, self.last.take()) {
            (Some(turns), Some(last)) => turns.close(last.line),
            (Some(_), None) => {}
            (None, _) => self.is_over = true,
        }
    }

    /// The current job starts, or keeps room, and so takes what it demands.
    pub(crate) fn note_start(&mut self) {
        if let (Some(turns), Some(last)) = (&mut self.turns, &self.last) {
            turns.start(last.line.party, &self.queue.entries[&last.job].demand);
        }
    }

    /// The same with an entry that stands for several jobs: it comes again when its user has the next turn.
    /// Returns false where there are no turns.
    pub(crate) fn note_start_of_member(&mut self) -> bool {
        if self.turns.is_none() {
            return false;
        }
        self.note_start();
        if let Some(QueueEntry { job, key, class, line }) = self.last.take()
            && let Some(walk) = self.lines.get_mut(&line)
        {
            walk.further.insert((key, job, class));
        }
        true
    }

    /// These actions of the plan stop jobs.
    pub(crate) fn note_stops(&mut self, actions: &[Action], view: &View) {
        if let Some(turns) = &mut self.turns {
            note_stops(turns, actions, view);
        }
    }

    /// Whose turn it is; `None` where all jobs belong to one user.
    pub(crate) const fn turns(&self) -> Option<&Turns> {
        self.turns.as_ref()
    }

    /// All jobs, as if each of them started when its turn comes.
    pub(crate) fn starting_each(mut self) -> impl Iterator<Item = QueueEntry<K>> {
        std::iter::from_fn(move || {
            let next = self.next();
            self.note_start();
            next
        })
    }

    fn next_of(&mut self, line: Line) -> Option<QueueEntry<K>> {
        let queue = self.queue;
        let fronts = queue.fronts.get(&line)?;
        let walk = self
            .lines
            .entry(line)
            .or_insert_with(|| LineWalk { fronts: fronts.iter().peekable(), further: BTreeSet::new() });
        loop {
            let (key, job, class) = walk.earliest()?;
            if self.closed.contains(&class) {
                continue;
            }
            let may_lend = |turns: &Turns| turns.may_lend(line.party, &queue.entries[&job].demand);
            // Where a job may not start, no other of its class does.
            if self.turns.as_ref().is_none_or(may_lend) {
                return Some(QueueEntry { job, key, class, line });
            }
        }
    }
}

impl<K: Ord + Copy> Iterator for Walk<'_, K> {
    type Item = QueueEntry<K>;

    fn next(&mut self) -> Option<QueueEntry<K>> {
        if let Some(last) = self.last.take()
            && let Some(QueueEntry { job, key, class, line }) = self.queue.behind(&last)
            && let Some(walk) = self.lines.get_mut(&line)
        {
            walk.further.insert((key, job, class));
        }
        while !self.is_over && self.closed.len() < self.queue.classes.len() {
            let line = match &self.turns {
                Some(turns) => turns.next()?,
                None => self.only,
            };
            self.last = self.next_of(line);
            match &mut self.turns {
                Some(turns) if self.last.is_none() => turns.close(line),
                Some(_) | None => break,
            }
        }
        self.last
    }
}

/// The users of the jobs that these actions stop hold so much less.
pub(crate) fn note_stops(turns: &mut Turns, actions: &[Action], view: &View) {
    for action in actions {
        if let Action::Preempt { job, .. } | Action::Reclaim { job, .. } | Action::StopIdle { job, .. } =
            action
            && let Some(stopped) = view.running.get(job)
        {
            turns.release(view.party(&stopped.traits), stopped.holds);
        }
    }
}
