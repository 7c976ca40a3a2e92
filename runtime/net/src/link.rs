//! A running link: the connection, the client and the service on it, and what may cut it, as one task.
//!
//! It ends when the connection breaks, the last clone of the client is dropped, the link is closed, or its
//! token is no longer good. Calls in flight fail then, and handlers are dropped.

use std::panic::AssertUnwindSafe;

use cohabit_wire::message::failure;
use futures::future::{BoxFuture, Shared};
use futures::{FutureExt, StreamExt};
use serde::Serialize;
use tarpc::context::Context;
use tarpc::server::{BaseChannel, Channel};
use tarpc::{ClientMessage, RequestName, ServerError};

use crate::duplex::CallTransport;
use crate::link_end::LinkEnd;

/// Calls of one peer that run at once; our own clients never have more in flight.
const MAX_CONCURRENT_CALLS: usize = 1_024;

/// Resolves when a link has ended; all clones resolve to the same end.
pub type LinkEndFuture = Shared<BoxFuture<'static, LinkEnd>>;

/// Serves the calls of a transport until it ends. Dropped, it drops every handler.
pub(crate) async fn serve<Request, Answer, Handler>(
    port: CallTransport<ClientMessage<Request>>,
    handler: Handler,
) where
    Request: RequestName + Send + 'static,
    Answer: Serialize + Send + 'static,
    Handler: Fn(Context, Request) -> BoxFuture<'static, Result<Answer, ServerError>> + Clone + Send + 'static,
{
    BaseChannel::with_defaults(port)
        .max_concurrent_requests(MAX_CONCURRENT_CALLS)
        .execute(tarpc::server::serve(handler))
        .for_each(|handling| async {
            tokio::spawn(handling);
        })
        .await;
}

/// Runs a handler; its panic becomes an error of the call, where tarpc would leave the caller waiting.
pub(crate) fn catch_handler_panic<Answer>(
    handling: impl Future<Output = Result<Answer, ServerError>> + Send + 'static,
) -> BoxFuture<'static, Result<Answer, ServerError>> {
    AssertUnwindSafe(handling)
        .catch_unwind()
        .map(|handled| {
            handled.unwrap_or_else(|_panic| {
                tracing::error!("a handler panicked; its caller got an error, and the link stays up");
                Err(failure("the other side failed while it handled the call: see its log".to_owned()))
            })
        })
        .boxed()
}

/// Drives all parts of a link until the first of them ends.
pub(crate) async fn run(
    pump: impl Future<Output = LinkEnd>,
    calls: impl Future,
    serves: impl Future<Output = ()>,
    cut: impl Future<Output = LinkEnd>,
) -> LinkEnd {
    tokio::select! {
        biased;
        end = cut => end,
        // Before the other two: they end when the connection does, but only the pump knows why.
        end = pump => end,
        _done = calls => LinkEnd::ClosedHere,
        () = serves => LinkEnd::ClosedHere,
    }
}

/// Runs a link in a task of its own.
pub(crate) fn spawn(link: impl Future<Output = LinkEnd> + Send + 'static) -> LinkEndFuture {
    let task = tokio::spawn(link);
    async move { task.await.unwrap_or_else(|error| LinkEnd::Broken(error.to_string())) }.boxed().shared()
}
