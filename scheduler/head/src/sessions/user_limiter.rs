//! Bounds how many queries, and how many changes, of one user are in the driver at once, so that nobody waits
//! long behind those of another; and what else of one user may be in the head at once.
//!
//! The driver handles one message after the other, and `lookup` cuts long questions into short queries. A
//! user who sends thousands at once has at most two of them in its mailbox, and the others wait here, in
//! their order. Submissions are not held back: many share one commit, and their rate is limited.

use std::sync::Arc;

use dashmap::DashMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Queries or changes of one user at once: one in the driver, and one that follows without a pause.
const AT_ONCE: usize = 2;

/// The turns of all users.
#[derive(Debug)]
pub(crate) struct UserLimiter {
    /// Of one user.
    at_once: usize,
    /// By name; there are no more names than tokens were made.
    users: DashMap<String, Arc<Semaphore>>,
}

impl Default for UserLimiter {
    fn default() -> UserLimiter {
        UserLimiter::new(AT_ONCE)
    }
}

impl UserLimiter {
    /// So many permits for each user.
    pub(crate) fn new(at_once: usize) -> UserLimiter {
        UserLimiter { at_once, users: DashMap::new() }
    }

    /// Waits for the turn of this user, which lasts as long as the permit.
    pub(super) async fn permit(&self, user: &str) -> Option<OwnedSemaphorePermit> {
        // Nobody closes the semaphore, so there always is one.
        self.semaphore(user).acquire_owned().await.ok()
    }

    /// So many permits, if they are there.
    pub(super) fn try_permits(&self, user: &str, count: u32) -> Option<OwnedSemaphorePermit> {
        self.semaphore(user).try_acquire_many_owned(count).ok()
    }

    fn semaphore(&self, user: &str) -> Arc<Semaphore> {
        let existing = self.users.get(user).map(|entry| Arc::clone(&entry));
        existing.unwrap_or_else(|| {
            let new = || Arc::new(Semaphore::new(self.at_once));
            Arc::clone(&self.users.entry(user.to_owned()).or_insert_with(new))
        })
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_user_waits_for_their_own_turns_only() {
        let limiter = UserLimiter::default();
        let held = [limiter.permit("mallory").await, limiter.permit("mallory").await];
        let mut third = Box::pin(limiter.permit("mallory"));
        assert!(third.as_mut().now_or_never().is_none());
        assert!(limiter.permit("ada").now_or_never().is_some());
        drop(held);
        assert!(third.now_or_never().is_some());
    }
    #[test]
    fn many_permits_are_there_or_not() {
        let limiter = UserLimiter::new(10);
        let held = limiter.try_permits("mallory", 8);
        assert!(held.is_some() && limiter.try_permits("mallory", 3).is_none());
        assert!(limiter.try_permits("ada", 10).is_some());
        drop(held);
        assert!(limiter.try_permits("mallory", 3).is_some());
    }
}
