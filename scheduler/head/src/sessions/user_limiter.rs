//! Bounds how many queries, and how many changes, of one user are in the driver at once, so that nobody waits
//! long behind those of another.
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
#[derive(Debug, Default)]
pub(crate) struct UserLimiter {
    /// By name; there are no more names than tokens were made.
    users: DashMap<String, Arc<Semaphore>>,
}

impl UserLimiter {
    /// Waits for the turn of this user, which lasts as long as the permit.
    pub(super) async fn permit(&self, user: &str) -> Option<OwnedSemaphorePermit> {
        let existing = self.users.get(user).map(|entry| Arc::clone(&entry));
        let semaphore = existing.unwrap_or_else(|| {
            Arc::clone(
                &self.users.entry(user.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(AT_ONCE))),
            )
        });
        // Nobody closes the semaphore, so there always is one.
        semaphore.acquire_owned().await.ok()
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
}
