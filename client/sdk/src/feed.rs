//! The feed: what happened to jobs, nodes and GPUs that is worth telling people.

use cohabit_types::{Feed, FeedCursor};

use crate::Error;
use crate::call::{Client, long_poll_context};
use crate::link::HeadConnection;

impl Client {
    /// What is worth telling of what has happened since the cursor, in order: to admins everything, to
    /// users what happened to their jobs. Waits for news for some 20 seconds, and may answer with none; says
    /// at once where to begin without a cursor. The head keeps the last 7 days.
    ///
    /// # Errors
    /// Those of the link.
    pub async fn feed(&self, after: Option<FeedCursor>) -> Result<Feed, Error> {
        self.call(|to: HeadConnection| async move { to.service.feed(long_poll_context(), after).await }).await
    }
}
