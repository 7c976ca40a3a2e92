//! Answers from the feed: a long poll, which the journal's thread wakes when it has written to the feed.

use cohabit_types::{Feed, FeedCursor, FeedEvent, FeedGap, Refusal, Role};
use tokio::time::{Instant, timeout_at};

use super::client::ClientSession;

impl ClientSession {
    /// Waits until there are entries after the cursor, or the limit comes. Users see those of their jobs.
    pub(super) async fn follow_feed(&self, after: Option<FeedCursor>) -> Result<Feed, Refusal> {
        let limit = Instant::now() + self.session_context.watch_limit;
        // Before the first look: no entry falls between the two.
        let mut written = self.session_context.feed.clone();
        written.mark_unchanged();
        let mut cursor = after;
        loop {
            let user = (self.by.role != Role::Admin).then(|| self.by.user.clone());
            let feed = self.history(move |history| history.feed(cursor, user.as_deref())).await?;
            self.pace_answer(feed.entries.iter().map(|entry| FeedEvent::weight(&entry.event)).sum()).await;
            let tells = !feed.entries.is_empty() || feed.gap != FeedGap::None || feed.more;
            // The journal's thread ends with the head.
            if after.is_none() || tells || !matches!(timeout_at(limit, written.changed()).await, Ok(Ok(()))) {
                return Ok(feed);
            }
            // Entries of others need not be looked at again.
            cursor = Some(feed.next);
        }
    }
}
