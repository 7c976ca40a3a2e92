//! Connections between the processes of an application.
//!
//! On one node they are Unix stream sockets, one at each process that is dialed, and one at the store of the
//! node. Those between nodes come to the one port of the node, and go on with TLS at the process that they
//! are for.
//!
//! ```text
//! socket         names and opens sockets          hello       what the dialing process says first
//! dial           this node and others             listener    lets in who knows the secret
//! network_port   accepts from other nodes ──▶ hand_over ──▶ network_admission: TLS, then the hello
//!   greeting       whom it is for                           stranger: who has not said it yet
//! connection     carries frames (frame_codec) both ways over a member_stream
//! session_end    a session of the core, with the connection on which its packets travel now
//! ```

mod connection;
mod dial;
mod frame_codec;
mod greeting;
mod hand_over;
mod hello;
mod link_failure;
mod listener;
mod member_stream;
mod network_admission;
mod network_port;
mod send_buffer;
mod session_end;
mod socket;
mod stranger;
#[cfg(test)]
mod tests;

pub(crate) use connection::{FrameHandler, carry};
pub(crate) use dial::{DialedConnection, dial_here, dial_objects, dial_there, introduce};
pub(crate) use frame_codec::{ReceivedFrames, append_frame};
pub(crate) use hand_over::accept_handed_over;
pub(crate) use hello::{HelloPurpose, MemberHello, StoreHello};
pub(crate) use link_failure::LinkFailure;
pub(crate) use listener::{HelloCheck, accept_members};
pub(crate) use member_stream::MemberStream;
pub(crate) use network_admission::NetworkAdmission;
pub(crate) use network_port::NetworkPort;
pub(crate) use send_buffer::SendBuffer;
pub(crate) use session_end::SessionEnd;
pub(crate) use socket::{SocketDirectory, SocketName};
pub(crate) use stranger::Stranger;
