//! The link to the head: opened when it is first needed, shared by all callers, and opened again after it
//! broke.
//!
//! A call that fails on a broken link drops it; this file repeats no call by itself.

use std::sync::Arc;

use cohabit_net::{ClientServiceClient, Endpoint, HelloAccepted, connect_client};
use tokio::sync::Mutex;

use crate::Error;

/// The one link that all clones of a client share.
pub(crate) struct HeadLink {
    endpoint: Endpoint,
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
    pub(crate) fn new(endpoint: Endpoint) -> HeadLink {
        HeadLink { endpoint, state: Mutex::default() }
    }

    /// The head's address.
    pub(crate) fn head(&self) -> &str {
        &self.endpoint.address
    }

    /// The present connection, or else a new one. Callers that come meanwhile wait for the same one.
    pub(crate) async fn connection(&self) -> Result<HeadConnection, Error> {
        let mut state = self.state.lock().await;
        if let Some(current) = &state.current {
            return Ok(current.clone());
        }
        let (service, accepted) = connect_client(&self.endpoint).await?;
        state.made += 1;
        let connection = HeadConnection { service, number: state.made, accepted: Arc::new(accepted) };
        state.current = Some(connection.clone());
        tracing::debug!(head = self.head(), number = connection.number, "connected");
        Ok(connection)
    }

    /// Makes the next caller connect anew, unless another has done so already.
    pub(crate) async fn forget(&self, broken: &HeadConnection) {
        let mut state = self.state.lock().await;
        if state.current.as_ref().is_some_and(|current| current.number == broken.number) {
            state.current = None;
        }
    }
}
