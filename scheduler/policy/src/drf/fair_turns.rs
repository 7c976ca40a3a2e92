//! Waiting jobs in the order of their users' dominant shares, which change with every job that starts.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use cohabit_types::{Demand, JobId, Time};

use super::demand_queues::{DemandClass, DemandQueues, TurnKey};
use super::dominant_share::DominantShare;
use super::user_holdings::UserHoldings;
use crate::ResourceAmounts;

/// The turns of one plan.
pub(super) struct FairTurns<'w> {
    /// All that the cluster has.
    whole: ResourceAmounts,
    users: Vec<UserTurns<'w>>,
    /// What jobs need the same; `None` where none fits any more.
    classes: Vec<Option<&'w DemandClass>>,
    /// The next job of each user.
    next: BTreeSet<NextTurn>,
}

/// Ordered as turns are: the larger priority, the smaller share, the earlier submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct NextTurn {
    priority: Reverse<i32>,
    share: u64,
    submitted_at: Time,
    job: JobId,
    user: usize,
    class: usize,
}

struct UserTurns<'w> {
    name: &'w str,
    held: ResourceAmounts,
    /// The next job of each class.
    open: BTreeSet<(TurnKey, usize)>,
}

/// The turn of one job.
#[derive(Debug, Clone, Copy)]
pub(super) struct FairTurn {
    next: NextTurn,
    /// The dominant share of its user, without the job.
    pub(super) share: DominantShare,
}

impl FairTurn {
    pub(super) const fn job(&self) -> JobId {
        self.next.job
    }
}

impl<'w> FairTurns<'w> {
    /// The turns of the jobs that need something of which there may be room.
    pub(super) fn new(
        waiting: &'w DemandQueues,
        holdings: &UserHoldings,
        whole: ResourceAmounts,
        may_fit: impl Fn(&Demand) -> bool,
    ) -> FairTurns<'w> {
        let mut turns = FairTurns { whole, users: vec![], classes: vec![], next: BTreeSet::new() };
        let mut known: BTreeMap<&str, usize> = BTreeMap::new();
        for (_, class) in waiting.classes().filter(|(demand, _)| may_fit(demand)) {
            for (name, jobs) in class {
                let user = *known.entry(name).or_insert_with(|| {
                    turns.users.push(UserTurns { name, held: holdings.of(name), open: BTreeSet::new() });
                    turns.users.len() - 1
                });
                turns.users[user].open.extend(jobs.first().map(|key| (*key, turns.classes.len())));
            }
            turns.classes.push(Some(class));
        }
        (0..turns.users.len()).for_each(|user| turns.queue_next(user));
        turns
    }

    /// The job whose turn it is. Its user has no further turn before it is said what became of it.
    pub(super) fn next(&mut self) -> Option<FairTurn> {
        loop {
            let next = self.next.pop_first()?;
            if self.classes[next.class].is_some() {
                return Some(FairTurn { next, share: self.share(next.user) });
            }
            self.queue_next(next.user);
        }
    }

    /// The job starts and holds so much from now on.
    pub(super) fn started(&mut self, turn: FairTurn, holds: ResourceAmounts) {
        let NextTurn { priority, submitted_at, job, user, class, share: _ } = turn.next;
        let turns = &mut self.users[user];
        turns.held = turns.held.plus(holds);
        let behind = (Bound::Excluded((priority, submitted_at, job)), Bound::Unbounded);
        let jobs = self.classes[class].and_then(|class| class.get(turns.name));
        let next = jobs.and_then(|jobs| jobs.range(behind).next());
        turns.open.extend(next.map(|key| (*key, class)));
        self.queue_next(user);
    }

    /// The job does not fit, and neither does any other one that needs the same.
    pub(super) fn passed(&mut self, turn: FairTurn) {
        self.classes[turn.next.class] = None;
        self.queue_next(turn.next.user);
    }

    fn queue_next(&mut self, user: usize) {
        while let Some(((priority, submitted_at, job), class)) = self.users[user].open.pop_first() {
            if self.classes[class].is_some() {
                let share = self.share(user).rank();
                self.next.insert(NextTurn { priority, share, submitted_at, job, user, class });
                return;
            }
        }
    }

    fn share(&self, user: usize) -> DominantShare {
        DominantShare::of(self.users[user].held, self.whole)
    }
}
