//! Connections between the processes of an application: Unix stream sockets, one at each process that is
//! dialed, and one at the store of the node.
//!
//! `socket` names and opens them, `hello` is what the dialing process says first, `listener` lets in who
//! knows the secret, `connection` carries frames (`frame_codec`) both ways, and `session_end` ties a session
//! of the core to the connection on which its packets travel now.

mod connection;
mod frame_codec;
mod hello;
mod link_failure;
mod listener;
mod send_buffer;
mod session_end;
mod socket;

pub(crate) use connection::{FrameHandler, carry};
pub(crate) use frame_codec::{ReceivedFrames, append_frame};
pub(crate) use hello::{HelloPurpose, MemberHello, StoreHello};
pub(crate) use link_failure::LinkFailure;
pub(crate) use listener::{HelloCheck, accept_members, dial, introduce};
pub(crate) use send_buffer::SendBuffer;
pub(crate) use session_end::SessionEnd;
pub(crate) use socket::{SocketDirectory, SocketName};
