//! The client, and how it calls a head: with a time limit, and again on a new link until the retry timeout.
//!
//! Nearly everything may be asked twice: questions change nothing, a submission carries a key, and cancelling
//! a cancelled job does no harm. What must not happen twice goes through `call_once`.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cohabit_net::{Backoff, Context, RpcError, context_for};
use cohabit_types::{Refusal, Span};

use crate::link::{HeadConnection, HeadLink};
use crate::{ConnectOptions, Error};

/// How long the head may take to answer a plain call.
const CALL_TIMEOUT: Span = Span::from_secs(20);

/// The same for a call that the head may hold back until there is news (some 20 seconds).
const LONG_POLL_TIMEOUT: Span = Span::from_secs(50);

/// Pauses between tries: people wait for the outcome, and clients are few.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How many jobs go into one message, so that the answer fits a frame.
pub(crate) const PAGE: usize = 500;

/// A client of one head. Clones are cheap and share one link.
#[derive(Clone)]
pub struct Client {
    pub(crate) link: Arc<HeadLink>,
    retry_timeout: Duration,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client of {}", self.head())
    }
}

/// What a call on one connection comes to.
type CallResult<T> = Result<Result<T, Refusal>, RpcError>;

/// The context of a call that is answered at once.
pub(crate) fn short_call_context() -> Context {
    context_for(CALL_TIMEOUT)
}

/// The context of a call that may wait for news.
pub(crate) fn long_poll_context() -> Context {
    context_for(LONG_POLL_TIMEOUT)
}

impl Client {
    /// How long calls are retried after the link breaks, by default.
    pub const DEFAULT_RETRY_TIMEOUT: Duration = Duration::from_secs(30);

    /// A client that connects with its first call, which waits for a head that is not there yet.
    #[must_use]
    pub fn disconnected(connect: ConnectOptions) -> Client {
        Client::of_link(HeadLink::new(connect.into(), None))
    }

    /// The same for a head that is looked for before each connection, on a blocking thread: one that was
    /// started again may have another address.
    ///
    /// # Errors
    /// Those of the first search.
    pub fn finding(
        find: impl Fn() -> Result<ConnectOptions, Error> + Send + Sync + 'static,
    ) -> Result<Client, Error> {
        let endpoint = find()?.into();
        Ok(Client::of_link(HeadLink::new(endpoint, Some(Arc::new(find)))))
    }

    fn of_link(link: HeadLink) -> Client {
        Client { link: Arc::new(link), retry_timeout: Client::DEFAULT_RETRY_TIMEOUT }
    }

    /// The same client, whose calls are retried for this long after the link breaks before they fail with
    /// [`Error::Unreachable`].
    #[must_use]
    pub fn with_retry_timeout(self, retry_timeout: Duration) -> Client {
        Client { retry_timeout, ..self }
    }

    /// The head's address.
    #[must_use]
    pub fn head(&self) -> &str {
        self.link.head()
    }

    /// Asks, and asks again when the link breaks or the head is ending: only for what may be asked twice.
    pub(crate) async fn call<T, C: Future<Output = CallResult<T>>>(
        &self,
        ask: impl Fn(HeadConnection) -> C,
    ) -> Result<T, Error> {
        let mut retry_timeout = RetryBudget::new(self.retry_timeout);
        loop {
            match self.link.call(&ask).await {
                Err(error) if error.is_transient() => retry_timeout.wait_before_retry(error).await?,
                result => return result,
            }
        }
    }

    /// Asks once, on a link that was alive a moment before.
    pub(crate) async fn call_once<T, C: Future<Output = CallResult<T>>>(
        &self,
        what: &'static str,
        ask: impl Fn(HeadConnection) -> C,
    ) -> Result<T, Error> {
        self.call(|to| async move { to.service.ping(short_call_context()).await.map(Ok) }).await?;
        let connection = self.link.connection().await?;
        let result = self.link.ask(connection, ask).await;
        if let Err(Error::Unreachable(why)) = result { Err(Error::Unconfirmed { what, why }) } else { result }
    }
}

impl HeadLink {
    async fn call<T, C: Future<Output = CallResult<T>>>(
        &self,
        ask: impl Fn(HeadConnection) -> C,
    ) -> Result<T, Error> {
        self.ask(self.connection().await?, ask).await
    }

    /// Asks on this connection, and forgets it if it turns out to be broken.
    async fn ask<T, C: Future<Output = CallResult<T>>>(
        &self,
        connection: HeadConnection,
        ask: impl Fn(HeadConnection) -> C,
    ) -> Result<T, Error> {
        match ask(connection.clone()).await {
            Ok(reply) => reply.map_err(Error::from),
            Err(error) => {
                self.forget(&connection).await;
                Err(Error::of_call(self.head(), &error))
            }
        }
    }
}

/// Time limit of retries, from the first error.
struct RetryBudget {
    limit: Duration,
    since: Option<Instant>,
    backoff: Backoff,
}

impl RetryBudget {
    fn new(limit: Duration) -> RetryBudget {
        RetryBudget { limit, since: None, backoff: Backoff::new(FIRST_PAUSE, LONGEST_PAUSE) }
    }

    /// Waits before the next try; returns the error when there is no time left for one.
    async fn wait_before_retry(&mut self, error: Error) -> Result<(), Error> {
        let spent = self.since.get_or_insert_with(Instant::now).elapsed();
        let left = self.limit.saturating_sub(spent);
        if left.is_zero() {
            return Err(error);
        }
        tracing::debug!(%error, "tries again");
        tokio::time::sleep(self.backoff.next_delay().min(left)).await;
        Ok(())
    }
}
