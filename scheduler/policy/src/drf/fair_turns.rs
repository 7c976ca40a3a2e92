//! Waiting jobs in the order of their users' dominant shares, which change with every job that starts.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::{JobId, Time};

use super::dominant_share::DominantShare;
use super::usage::UserUsage;
use crate::ResourceAmounts;
use crate::queue::{PendingQueue, PriorityKey, QueueEntry, Walk};

/// The waiting jobs of each user, first come, first served.
pub(super) type UserQueues = BTreeMap<String, PendingQueue<PriorityKey>>;

/// The turns of one plan.
pub(super) struct FairTurns<'q> {
    /// All that the cluster has.
    whole: ResourceAmounts,
    users: Vec<UserTurns<'q>>,
    /// The next job of each user. The larger priority, the smaller share and the earlier submission first.
    next: BTreeSet<(Reverse<i32>, u64, Time, JobId, usize)>,
}

struct UserTurns<'q> {
    held: ResourceAmounts,
    walk: Walk<'q, PriorityKey>,
}

/// The turn of one job.
#[derive(Debug, Clone, Copy)]
pub(super) struct FairTurn {
    user: usize,
    pub(super) job: JobId,
    /// That of its user, without the job.
    pub(super) share: DominantShare,
}

impl<'q> FairTurns<'q> {
    pub(super) fn new(queues: &'q UserQueues, usage: &UserUsage, whole: ResourceAmounts) -> FairTurns<'q> {
        let user = |(name, queue): (&String, &'q PendingQueue<PriorityKey>)| UserTurns {
            held: usage.of(name),
            walk: queue.walk(),
        };
        let mut turns = FairTurns { whole, users: queues.iter().map(user).collect(), next: BTreeSet::new() };
        (0..turns.users.len()).for_each(|user| turns.queue_next(user));
        turns
    }

    /// The job whose turn it is. Its user has no further turn before it is said what became of it.
    pub(super) fn next(&mut self) -> Option<FairTurn> {
        let (_, _, _, job, user) = self.next.pop_first()?;
        Some(FairTurn { user, job, share: self.share(user) })
    }

    /// The job starts and holds so much from now on.
    pub(super) fn started(&mut self, turn: FairTurn, holds: ResourceAmounts) {
        let user = &mut self.users[turn.user];
        user.held = user.held.plus(holds);
        self.queue_next(turn.user);
    }

    /// The job does not fit, and neither do the user's others that need the same.
    pub(super) fn passed(&mut self, turn: FairTurn) {
        self.users[turn.user].walk.close();
        self.queue_next(turn.user);
    }

    fn queue_next(&mut self, user: usize) {
        if let Some(QueueEntry { job, key: (priority, _, submitted_at), class: _ }) =
            self.users[user].walk.next()
        {
            self.next.insert((priority, self.share(user).rank(), submitted_at, job, user));
        }
    }

    fn share(&self, user: usize) -> DominantShare {
        DominantShare::of(self.users[user].held, self.whole)
    }
}
