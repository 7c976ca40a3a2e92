//! The runners of one class as one caller sees them: which tasks each has got, and which takes more.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::{RankId, Span};

use crate::ids::{CallNumber, NodeNumber};
use crate::needed_bytes::NeededBytes;
use crate::queued_task::Recall;
use crate::task_estimates::WINDOW_WORK;

/// So many tasks are in flight at each runner, however long they take: the next one is there when one ends.
const LEAST_WINDOW: usize = 2;

/// Most tasks in flight at one runner.
const MOST_WINDOW: usize = 64;

/// Which runners a task with needs may go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// Those with room in their windows: it is not known how long the tasks take that they have got.
    Window,
    /// Also those that have enough to do, if it starts there before it could start elsewhere.
    Any,
}

/// The right to send tasks to runners.
#[derive(Debug)]
pub(crate) struct TaskLeases {
    first_rank: i64,
    last_rank: i64,
    all: BTreeMap<RankId, TaskLease>,
    /// Those that take more tasks: least work first, then fewest tasks, then those that joined last,
    /// since others may be busy with tasks of other processes; last those that have returned a task.
    open: BTreeSet<LoadKey>,
    /// Those that could take more tasks, also beyond their windows, by node; kept while there are several
    /// nodes.
    near: Option<BTreeMap<NodeNumber, BTreeSet<LoadKey>>>,
    /// How many runners each node has.
    nodes: BTreeMap<NodeNumber, usize>,
    joined: usize,
    /// How many of those that get tasks have none in flight.
    idle: usize,
    /// Those with tasks in flight that can be recalled: most work last.
    recallable: BTreeSet<LoadKey>,
}

type LoadKey = (Span, usize, i64, RankId);

#[derive(Debug)]
struct TaskLease {
    node: NodeNumber,
    rank: i64,
    state: LeaseState,
    /// The tasks that were sent and have not ended.
    calls: BTreeSet<CallNumber>,
    /// How many of them are not parked.
    in_flight: usize,
    /// How many of these cannot be recalled (again).
    recalled: usize,
    /// How long those in flight take.
    work: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeaseState {
    Joined,
    /// It gets no tasks for now.
    Paused,
    /// It gets no more tasks.
    Leaving,
}

impl TaskLeases {
    pub(crate) const fn new() -> TaskLeases {
        TaskLeases {
            first_rank: 0,
            last_rank: 0,
            all: BTreeMap::new(),
            open: BTreeSet::new(),
            near: None,
            nodes: BTreeMap::new(),
            joined: 0,
            idle: 0,
            recallable: BTreeSet::new(),
        }
    }

    pub(crate) fn join(&mut self, runner: RankId, node: NodeNumber) {
        self.first_rank -= 1;
        let rank = self.first_rank;
        self.all.entry(runner).or_insert_with(|| {
            self.joined += 1;
            self.idle += 1;
            *self.nodes.entry(node).or_insert(0) += 1;
            TaskLease {
                node,
                rank,
                state: LeaseState::Joined,
                calls: BTreeSet::new(),
                in_flight: 0,
                recalled: 0,
                work: Span::ZERO,
            }
        });
        self.change(runner, |_| {});
        self.follow_nodes();
    }

    /// Begins or ends to keep runners by node.
    fn follow_nodes(&mut self) {
        if self.nodes.len() < 2 {
            self.near = None;
        } else if self.near.is_none() {
            let mut near: BTreeMap<NodeNumber, BTreeSet<LoadKey>> = BTreeMap::new();
            for (runner, lease) in self.all.iter().filter(|(_, lease)| lease.takes_more()) {
                near.entry(lease.node).or_default().insert(lease.key(*runner));
            }
            self.near = Some(near);
        }
    }

    /// A runner gets no more tasks.
    pub(crate) fn leave(&mut self, runner: RankId) {
        self.joined -= usize::from(self.is_joined(runner));
        self.change(runner, |lease| lease.state = LeaseState::Leaving);
    }

    /// A runner gets no tasks for now.
    pub(crate) fn pause(&mut self, runner: RankId) {
        if self.is_joined(runner) {
            self.joined -= 1;
            self.change(runner, |lease| lease.state = LeaseState::Paused);
        }
    }

    /// A runner that was paused gets tasks again.
    pub(crate) fn resume(&mut self, runner: RankId) {
        if self.is_paused(runner) {
            self.joined += 1;
            self.change(runner, |lease| lease.state = LeaseState::Joined);
        }
    }

    pub(crate) fn is_paused(&self, runner: RankId) -> bool {
        self.all.get(&runner).is_some_and(|lease| lease.state == LeaseState::Paused)
    }

    /// A runner has ended: the tasks that it had got.
    pub(crate) fn end(&mut self, runner: RankId) -> BTreeSet<CallNumber> {
        self.leave(runner);
        let Some(TaskLease { node, calls, .. }) = self.all.remove(&runner) else { return BTreeSet::new() };
        if let Some(count) = self.nodes.get_mut(&node) {
            *count -= 1;
            if *count == 0 {
                self.nodes.remove(&node);
            }
        }
        self.follow_nodes();
        calls
    }

    pub(crate) fn is_joined(&self, runner: RankId) -> bool {
        self.all.get(&runner).is_some_and(|lease| lease.state == LeaseState::Joined)
    }

    /// Whether a runner has joined and not ended.
    pub(crate) fn knows(&self, runner: RankId) -> bool {
        self.all.contains_key(&runner)
    }

    /// Number of runners that get tasks.
    pub(crate) const fn joined(&self) -> usize {
        self.joined
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The runner that gets the next task.
    pub(crate) fn next(&self) -> Option<RankId> {
        self.open.first().map(|(_, _, _, runner)| *runner)
    }

    /// The runner at which a task starts earliest that needs stored objects, by what is in flight there and
    /// what has to be fetched.
    pub(crate) fn nearest(&self, needed: &NeededBytes, room: Room) -> Option<RankId> {
        let start = |node: NodeNumber, key: &LoadKey| (key.0 + needed.fetch_time(node), *key);
        let nearest = self.near.iter().flatten().filter_map(|(node, keys)| {
            let mut all = keys.iter();
            let key = match room {
                Room::Any => all.next(),
                Room::Window => all.next().filter(|key| self.open.contains(key)),
            };
            key.map(|key| start(*node, key))
        });
        nearest.min().map(|(_, (_, _, _, runner))| runner)
    }

    /// Number of runners that get tasks and have none in flight.
    pub(crate) const fn idle(&self) -> usize {
        self.idle
    }

    /// The runner with the most work in flight that can be recalled, if it is worth a frame.
    pub(crate) fn most_loaded(&self) -> Option<RankId> {
        let (work, _, _, runner) = self.recallable.last()?;
        (*work >= WINDOW_WORK).then_some(*runner)
    }

    /// How long the tasks in flight at a runner take.
    pub(crate) fn work(&self, runner: RankId) -> Span {
        self.all.get(&runner).map_or(Span::ZERO, |lease| lease.work)
    }

    /// The tasks that a runner has got.
    pub(crate) fn calls(&self, runner: RankId) -> Vec<CallNumber> {
        self.all.get(&runner).map(|lease| lease.calls.iter().copied().collect()).unwrap_or_default()
    }

    /// A task is sent to a runner.
    pub(crate) fn send(&mut self, runner: RankId, call: CallNumber, work: Span, recall: Recall) {
        self.change(runner, |lease| {
            lease.calls.insert(call);
            lease.in_flight += 1;
            lease.recalled += usize::from(recall != Recall::None);
            lease.work = lease.work + work;
        });
    }

    /// A task in flight is recalled.
    pub(crate) fn recall(&mut self, runner: RankId) {
        self.change(runner, |lease| lease.recalled += 1);
    }

    /// A runner has returned a task that was recalled: among equals, the others are first to get it.
    pub(crate) fn put_last(&mut self, runner: RankId) {
        self.last_rank += 1;
        let rank = self.last_rank;
        self.change(runner, |lease| lease.rank = rank);
    }

    /// A task in flight can be recalled again.
    pub(crate) fn permit_recall(&mut self, runner: RankId) {
        self.change(runner, |lease| lease.recalled -= 1);
    }

    /// A runner has a task that takes no room in its window.
    pub(crate) fn keep(&mut self, runner: RankId, call: CallNumber) {
        if let Some(lease) = self.all.get_mut(&runner) {
            lease.calls.insert(call);
        }
    }

    /// A task in flight is no longer with a runner, or no longer takes up its window.
    pub(crate) fn remove(&mut self, runner: RankId, call: CallNumber, work: Span, recall: Recall) {
        self.change(runner, |lease| {
            lease.calls.remove(&call);
            lease.in_flight -= 1;
            lease.recalled -= usize::from(recall != Recall::None);
            lease.work = lease.work - work;
        });
    }

    /// A task that took no room in the window is no longer with a runner.
    pub(crate) fn forget(&mut self, runner: RankId, call: CallNumber) {
        if let Some(lease) = self.all.get_mut(&runner) {
            lease.calls.remove(&call);
        }
    }

    fn change(&mut self, runner: RankId, change: impl FnOnce(&mut TaskLease)) {
        let Some(lease) = self.all.get_mut(&runner) else { return };
        let key = lease.key(runner);
        self.open.remove(&key);
        self.recallable.remove(&key);
        if let Some(keys) = self.near.as_mut().and_then(|near| near.get_mut(&lease.node)) {
            keys.remove(&key);
        }
        self.idle -= usize::from(lease.is_idle());
        change(lease);
        if lease.is_open() {
            self.open.insert(lease.key(runner));
        }
        if let Some(near) = self.near.as_mut().filter(|_| lease.takes_more()) {
            near.entry(lease.node).or_default().insert(lease.key(runner));
        }
        if lease.is_recallable() {
            self.recallable.insert(lease.key(runner));
        }
        self.idle += usize::from(lease.is_idle());
    }
}

impl TaskLease {
    const fn key(&self, runner: RankId) -> LoadKey {
        (self.work, self.in_flight, self.rank, runner)
    }

    fn is_idle(&self) -> bool {
        self.state == LeaseState::Joined && self.in_flight == 0
    }

    fn is_recallable(&self) -> bool {
        self.state == LeaseState::Joined && self.in_flight > self.recalled
    }

    /// Whether it gets tasks, if need be beyond its window.
    fn takes_more(&self) -> bool {
        self.state == LeaseState::Joined && self.in_flight < MOST_WINDOW
    }

    fn is_open(&self) -> bool {
        let window =
            self.in_flight < LEAST_WINDOW || (self.in_flight < MOST_WINDOW && self.work < WINDOW_WORK);
        window && self.state == LeaseState::Joined
    }
}
