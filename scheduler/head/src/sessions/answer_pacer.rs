//! Bounds how many bytes of answers one user gets in a second: large answers cost the threads of the head
//! time to build, encode and encrypt, in which others wait.

use std::time::Instant;

use dashmap::DashMap;

use crate::rates::{Bucket, BucketRate, pause};

/// In bytes. A list of all jobs of a large cluster is a part of the burst.
const RATE: BucketRate = BucketRate { per_second: 16e6, burst: 64e6 };

/// The answers of all users.
#[derive(Debug, Default)]
pub(crate) struct AnswerPacer {
    /// By name; there are no more names than tokens were made.
    users: DashMap<String, Bucket>,
}

impl AnswerPacer {
    /// Waits until an answer of so many bytes may go to this user.
    pub(super) async fn pace(&self, user: &str, bytes: usize) {
        let now = Instant::now();
        let wait = {
            let mut bucket = self.users.entry(user.to_owned()).or_insert_with(|| Bucket::full(RATE, now));
            bucket.charge(bytes as u64, RATE, now)
        };
        pause(wait).await;
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn only_a_user_who_asks_for_too_much_waits() {
        let pacer = AnswerPacer::default();
        assert!(pacer.pace("mallory", 64_000_000).now_or_never().is_some());
        assert!(pacer.pace("mallory", 2_000_000).now_or_never().is_none());
        assert!(pacer.pace("ada", 2_000_000).now_or_never().is_some());
    }
}
