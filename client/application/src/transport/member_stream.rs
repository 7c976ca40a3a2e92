//! A connection between two processes, on one node or over the network.

use cohabit_net::ApplicationStream;
use tokio::net::UnixStream;

/// A connection whose other end is a process of the application.
#[derive(Debug)]
pub(crate) enum MemberStream {
    /// On this node.
    Node(UnixStream),
    /// On another one.
    Network(Box<ApplicationStream>),
}

impl From<UnixStream> for MemberStream {
    fn from(stream: UnixStream) -> MemberStream {
        MemberStream::Node(stream)
    }
}

impl From<ApplicationStream> for MemberStream {
    fn from(stream: ApplicationStream) -> MemberStream {
        MemberStream::Network(Box::new(stream))
    }
}
