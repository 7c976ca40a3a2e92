//! Connections between the processes of an application: Unix stream sockets, one at each process that is
//! dialed.
//!
//! `socket` names and opens them, `hello` is what the dialing process says first, `listener` lets in who
//! knows the secret, `connection` carries frames both ways, and `session_end` ties a session of the core to
//! the connection on which its packets travel now.

mod connection;
mod hello;
mod listener;
mod send_buffer;
mod session_end;
mod socket;

pub(crate) use connection::{FrameHandler, LinkFailure, ReceivedFrames, carry};
pub(crate) use hello::{HelloPurpose, MemberHello};
pub(crate) use listener::{HelloCheck, accept_members, dial};
pub(crate) use send_buffer::SendBuffer;
pub(crate) use session_end::SessionEnd;
pub(crate) use socket::SocketDirectory;
