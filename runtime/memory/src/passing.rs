//! Descriptors over Unix sockets, at most one with each message.
//!
//! A message is what one call sends; on a stream, its descriptor arrives with the first of its bytes.
//! Sockets may be non-blocking: the errors are those of the kernel.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::cmsg_space;
use rustix::io::retry_on_intr;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// What a call has received.
#[derive(Debug)]
pub struct ReceivedMessage {
    /// Bytes received; none if the other end was closed.
    pub length: usize,
    /// The descriptor that came with them, of whatever the sender chose. It is closed in programs that this
    /// process starts.
    pub fd: Option<OwnedFd>,
}

/// Sends bytes, with a descriptor or without. Returns how many of the bytes were sent; the descriptor went
/// with the first.
///
/// # Errors
/// If the socket fails or would block, or if there are no bytes for the descriptor to go with.
pub fn send_message(socket: impl AsFd, bytes: &[u8], fd: Option<BorrowedFd<'_>>) -> io::Result<usize> {
    if bytes.is_empty() && fd.is_some() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a descriptor needs a byte to go with"));
    }
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut attached = SendAncillaryBuffer::new(&mut space);
    if let Some(fd) = &fd {
        attached.push(SendAncillaryMessage::ScmRights(std::slice::from_ref(fd)));
    }
    let sent =
        retry_on_intr(|| sendmsg(&socket, &[IoSlice::new(bytes)], &mut attached, SendFlags::NOSIGNAL))?;
    Ok(sent)
}

/// Receives bytes, and the descriptor with them, if there is one.
///
/// # Errors
/// If the socket fails or would block, or if more than one descriptor came; all of them are closed then.
pub fn receive_message(socket: impl AsFd, into: &mut [u8]) -> io::Result<ReceivedMessage> {
    // The kernel closes what does not fit. By its alignment, this has room for two.
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut attached = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(into)];
    let received = retry_on_intr(|| recvmsg(&socket, &mut parts, &mut attached, RecvFlags::CMSG_CLOEXEC))?;
    let mut fds: Vec<OwnedFd> = attached
        .drain()
        .filter_map(
            |message| {
                if let RecvAncillaryMessage::ScmRights(fds) = message { Some(fds) } else { None }
            },
        )
        .flatten()
        .collect();
    let fd = fds.pop();
    if !fds.is_empty() || received.flags.contains(ReturnFlags::CTRUNC) {
        let reason = "more than one descriptor came with a message, or this process has no room for it";
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    }
    Ok(ReceivedMessage { length: received.bytes, fd })
}
