//! Carries frames over one connection, both ways, on one task.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use bytes::{Buf, BytesMut};
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::frame_codec::ReceivedFrames;
use super::link_failure::LinkFailure;
use super::member_stream::MemberStream;
use super::send_buffer::{MAX_FRAME, SendBuffer};

/// How much is read at once, in bytes.
const READ_BYTES: usize = 64 << 10;

/// The longest hello, in bytes.
pub(super) const LONGEST_HELLO: usize = 1 << 10;

/// What becomes of the frames of a connection.
pub(crate) trait FrameHandler {
    /// Handles all frames that came at once.
    ///
    /// # Errors
    /// If the connection cannot go on.
    fn deliver(&self, frames: &mut ReceivedFrames<'_>) -> Result<(), LinkFailure>;

    /// Puts an acknowledgement into the buffer, if one is due. Called before each write.
    fn acknowledge(&self);
}

/// Reads the first frame of a connection, whoever is at the other end. What comes after it stays in the
/// buffer.
///
/// # Errors
/// If the connection breaks, or the frame is no `T`.
pub(super) async fn read_hello<T: DeserializeOwned>(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut BytesMut,
) -> Result<T, LinkFailure> {
    loop {
        let mut frames = ReceivedFrames::new(buffer, LONGEST_HELLO);
        if let Some(hello) = frames.take()? {
            let taken = frames.taken();
            buffer.advance(taken);
            return Ok(hello);
        }
        read_some(stream, buffer).await?;
    }
}

/// Carries frames until the connection ends: returns why. `buffer` has what was read already.
pub(crate) async fn carry(
    stream: &mut MemberStream,
    buffer: BytesMut,
    sending: &SendBuffer,
    endpoint: &impl FrameHandler,
) -> LinkFailure {
    match stream {
        MemberStream::Node(stream) => carry_halves(stream.split(), buffer, sending, endpoint).await,
        MemberStream::Network(stream) => {
            carry_halves(tokio::io::split(stream), buffer, sending, endpoint).await
        }
    }
}

async fn carry_halves(
    (mut reading, writing): (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
    mut buffer: BytesMut,
    sending: &SendBuffer,
    endpoint: &impl FrameHandler,
) -> LinkFailure {
    let read = async move {
        loop {
            let mut frames = ReceivedFrames::new(&buffer, MAX_FRAME);
            endpoint.deliver(&mut frames)?;
            let taken = frames.taken();
            buffer.advance(taken);
            read_some(&mut reading, &mut buffer).await?;
        }
    };
    let write = write_frames(writing, sending, endpoint);
    // Both go on for ever unless they fail.
    let ended: Result<(std::convert::Infallible, std::convert::Infallible), LinkFailure> =
        futures::future::try_join(read, write).await;
    match ended {
        Err(failure) => failure,
        Ok((never, _)) => match never {},
    }
}

async fn write_frames(
    mut writing: impl AsyncWrite + Unpin,
    sending: &SendBuffer,
    endpoint: &impl FrameHandler,
) -> Result<std::convert::Infallible, LinkFailure> {
    let mut bytes = Vec::new();
    loop {
        sending.changed().await;
        // Those who were woken by what was read speak first: one write takes all, and acknowledges it.
        yield_once().await;
        endpoint.acknowledge();
        bytes = sending.take(bytes).ok_or(LinkFailure::Closed)?;
        writing.write_all(&bytes).await?;
        // TLS may have kept some of it.
        writing.flush().await?;
    }
}

async fn read_some(reading: &mut (impl AsyncRead + Unpin), buffer: &mut BytesMut) -> Result<(), LinkFailure> {
    buffer.reserve(READ_BYTES);
    match reading.read_buf(buffer).await? {
        0 => Err(LinkFailure::Broken(io::ErrorKind::UnexpectedEof.into())),
        _ => Ok(()),
    }
}

/// Lets every other task run that can. Unlike tokio's, it does not look for input and output before.
async fn yield_once() {
    let mut has_yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
