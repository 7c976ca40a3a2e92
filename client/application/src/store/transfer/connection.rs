//! Connections with the stores of other nodes, which others open.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use cohabit_application_core::NodeNumber;
use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};

/// How long the other end may do nothing while something is to come from it, or to go to it.
pub(super) const STALL: Duration = Duration::from_secs(30);

/// A connection with the store of another node.
pub(crate) trait OtherStore: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> OtherStore for T {}

/// A connection that the store of another node has dialed.
pub(crate) struct OpenedConnection {
    /// The connection.
    pub(crate) stream: Box<dyn OtherStore>,
    /// What was read already.
    pub(crate) received: BytesMut,
}

/// Opens a connection that was accepted, on the thread of the store.
pub(crate) type ConnectionOpening = BoxFuture<'static, io::Result<OpenedConnection>>;

/// Dials the store of a node, on the thread of the store.
pub(crate) type NodeConnector =
    Arc<dyn Fn(NodeNumber) -> BoxFuture<'static, io::Result<Box<dyn OtherStore>>> + Send + Sync>;
