//! Which submissions of each user have jobs in the queue, in its order.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The submissions with eligible jobs of each user whose running jobs are limited.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct UserQueues(BTreeMap<String, BTreeSet<(Reverse<i32>, u64)>>);

impl UserQueues {
    pub(crate) fn insert(&mut self, user: &str, priority: i32, number: u64) {
        let place = (Reverse(priority), number);
        match self.0.get_mut(user) {
            Some(queue) => _ = queue.insert(place),
            None => _ = self.0.insert(user.to_owned(), BTreeSet::from([place])),
        }
    }

    pub(crate) fn remove(&mut self, user: &str, priority: i32, number: u64) {
        let Some(queue) = self.0.get_mut(user) else { return };
        queue.remove(&(Reverse(priority), number));
        if queue.is_empty() {
            self.0.remove(user);
        }
    }

    /// The numbers of a user's submissions, the next one first.
    pub(crate) fn of_user(&self, user: &str) -> impl Iterator<Item = u64> {
        self.0.get(user).into_iter().flatten().map(|(_, number)| *number)
    }

    pub(crate) fn users(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}
