//! Lists of jobs, a page at a time: the next page is asked for when the last one is used up.

use std::collections::VecDeque;

use cohabit_types::{Filter, JobRecord, JobUpdates, ListPage, UpdateCursor};
use futures::stream::{BoxStream, StreamExt, TryStreamExt, try_unfold};

use crate::Error;
use crate::call::{Client, PAGE, short_call_context};
use crate::link::HeadConnection;

impl Client {
    /// Jobs that pass the filter, the newest last; a limit of 0 is none. Attempts are left out: see
    /// [`Client::show`].
    #[must_use]
    pub fn list(&self, filter: Filter) -> BoxStream<'static, Result<JobRecord, Error>> {
        let listing =
            Listing { client: self.clone(), left: left(&filter), filter, page: VecDeque::new(), more: true };
        try_unfold(
            listing,
            |mut listing| async move { Ok(listing.next().await?.map(|record| (record, listing))) },
        )
        .boxed()
    }

    /// The same jobs as one list.
    ///
    /// # Errors
    /// Those of the link, or a filter that the head refuses.
    pub async fn list_all(&self, filter: Filter) -> Result<Vec<JobRecord>, Error> {
        self.list(filter).try_collect().await
    }

    /// Jobs of all users that have changed since the cursor; where to begin without one. A program that shows
    /// all jobs asks for a cursor, lists the jobs, and asks again and again for what has changed. Why jobs
    /// wait changes with every other job, which is no change of theirs.
    ///
    /// # Errors
    /// Those of the link.
    pub async fn job_updates(&self, after: Option<UpdateCursor>) -> Result<JobUpdates, Error> {
        self.call(
            |to: HeadConnection| async move { to.service.job_updates(short_call_context(), after).await },
        )
        .await
    }
}

/// A list on its way.
struct Listing {
    client: Client,
    /// Its `after` moves with the pages.
    filter: Filter,
    /// How many jobs may still be asked for.
    left: u64,
    page: VecDeque<JobRecord>,
    /// Whether the head has more.
    more: bool,
}

fn left(filter: &Filter) -> u64 {
    if filter.limit == 0 { u64::MAX } else { filter.limit.into() }
}

impl Listing {
    async fn next(&mut self) -> Result<Option<JobRecord>, Error> {
        if self.page.is_empty() && self.more && self.left > 0 {
            self.fetch_page().await?;
        }
        Ok(self.page.pop_front())
    }

    async fn fetch_page(&mut self) -> Result<(), Error> {
        let limit = u32::try_from(self.left).unwrap_or(u32::MAX).min(PAGE as u32);
        let ask = |to: HeadConnection| {
            let filter = Filter { limit, ..self.filter.clone() };
            async move { to.service.list(short_call_context(), filter).await }
        };
        let ListPage { jobs, more } = self.client.call(ask).await?;
        self.filter.after = jobs.last().map(|job| job.id).or(self.filter.after);
        self.left = self.left.saturating_sub(jobs.len() as u64);
        self.more = more && !jobs.is_empty();
        self.page = jobs.into();
        Ok(())
    }
}
