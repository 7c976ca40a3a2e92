//! Where the feed comes from: the head.

use cohabit_client::types::{Feed, FeedCursor};
use cohabit_client::{Client, Error};

/// Answers with the entries after a cursor, and waits for some where there are none.
pub(crate) trait FeedSource: Clone + Send + Sync + 'static {
    /// The entries after this cursor; where to begin without one.
    fn feed(&self, after: Option<FeedCursor>) -> impl Future<Output = Result<Feed, Error>> + Send;
}

impl FeedSource for Client {
    async fn feed(&self, after: Option<FeedCursor>) -> Result<Feed, Error> {
        Client::feed(self, after).await
    }
}
