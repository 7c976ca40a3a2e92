//! The link to the head: opened when it is first needed, shared by all callers, and opened again after it
//! broke.
//!
//! A call that fails on a broken link drops it; this file repeats no call by itself.

use std::sync::Arc;

use cohabit_net::{ClientServiceClient, Endpoint, HelloAccepted, connect_client};
use tokio::sync::Mutex;

use crate::connect::on_blocking_thread;
use crate::{ConnectOptions, Error};

/// Finds the head. It reads files.
pub(crate) type FindHead = Arc<dyn Fn() -> Result<ConnectOptions, Error> + Send + Sync>;

/// The one link that all clones of a client share.
pub(crate) struct HeadLink {
    endpoint: Endpoint,
    /// Asked before each connection: a head that was started again may have another address.
    find: Option<FindHead>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    current: Option<HeadConnection>,
    made: u64,
}

/// A connection to the head, as long as it lasts.
#[derive(Clone)]
pub(crate) struct HeadConnection {
    /// Where calls go.
    pub(crate) service: ClientServiceClient,
    /// The number of this connection among the successive ones, from 1. Revisions are valid on one of them.
    pub(crate) number: u64,
    /// The head's answer to the hello.
    pub(crate) accepted: Arc<HelloAccepted>,
}

impl HeadLink {
    pub(crate) fn new(endpoint: Endpoint, find: Option<FindHead>) -> HeadLink {
        HeadLink { endpoint, find, state: Mutex::default() }
    }

    /// The head's address, as it was at first.
    pub(crate) fn head(&self) -> &str {
        &self.endpoint.address
    }

    /// The present connection, or else a new one. Callers that come meanwhile wait for the same one.
    pub(crate) async fn connection(&self) -> Result<HeadConnection, Error> {
        let mut state = self.state.lock().await;
        if let Some(current) = &state.current {
            return Ok(current.clone());
        }
        let endpoint = self.endpoint().await;
        let (service, accepted) = connect_client(&endpoint).await?;
        state.made += 1;
        let connection = HeadConnection { service, number: state.made, accepted: Arc::new(accepted) };
        state.current = Some(connection.clone());
        tracing::debug!(head = endpoint.address, number = connection.number, "connected");
        Ok(connection)
    }

    /// Where the head is now. Nothing says so while it is away.
    async fn endpoint(&self) -> Endpoint {
        let Some(find) = self.find.clone() else { return self.endpoint.clone() };
        let found = on_blocking_thread(move || find()).await;
        found.map_or_else(|_| self.endpoint.clone(), Endpoint::from)
    }

    /// Makes the next caller connect anew, unless another has done so already.
    pub(crate) async fn forget(&self, broken: &HeadConnection) {
        let mut state = self.state.lock().await;
        if state.current.as_ref().is_some_and(|current| current.number == broken.number) {
            state.current = None;
        }
    }
}
