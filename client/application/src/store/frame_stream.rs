//! Frames with descriptors over a Unix socket.

use std::collections::VecDeque;
use std::os::fd::{BorrowedFd, OwnedFd};

use bytes::{Buf, BytesMut};
use cohabit_application_core::MAX_STORE_FRAME;
use cohabit_memory::{receive_message, send_message};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::Interest;
use tokio::net::UnixStream;

use crate::transport::{LinkFailure, ReceivedFrames, append_frame};

/// What is read at once, in bytes.
const READ_BYTES: usize = 4 << 10;

/// One frame may be incomplete, and the next one may have begun.
const MOST_DESCRIPTORS: usize = 2;

/// The end of a connection that receives.
pub(super) struct FrameReader<'a> {
    stream: &'a UnixStream,
    buffer: BytesMut,
    /// Descriptors whose frames are not complete yet. Each came with the first byte of its frame, or before.
    descriptors: VecDeque<OwnedFd>,
}

impl FrameReader<'_> {
    /// `buffer` has what was read already.
    pub(super) const fn new(stream: &UnixStream, buffer: BytesMut) -> FrameReader<'_> {
        FrameReader { stream, buffer, descriptors: VecDeque::new() }
    }

    /// The next frame.
    ///
    /// # Errors
    /// If the connection ends, or what comes is no frame.
    pub(super) async fn next<T: DeserializeOwned>(&mut self) -> Result<T, LinkFailure> {
        loop {
            let mut frames = ReceivedFrames::new(&self.buffer, MAX_STORE_FRAME);
            let frame = frames.take()?;
            let taken = frames.taken();
            self.buffer.advance(taken);
            if let Some(frame) = frame {
                return Ok(frame);
            }
            self.receive().await?;
        }
    }

    /// The descriptor that came with the frame.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn descriptor(&mut self) -> Result<OwnedFd, LinkFailure> {
        let missing = || LinkFailure::Protocol("a descriptor is missing".into());
        self.descriptors.pop_front().ok_or_else(missing)
    }

    /// Checks that no descriptor came with the frame.
    ///
    /// # Errors
    /// If one did.
    pub(super) fn no_descriptor(&self) -> Result<(), LinkFailure> {
        match self.descriptors.is_empty() {
            true => Ok(()),
            false => Err(LinkFailure::Protocol("a descriptor came that belongs to no frame".into())),
        }
    }

    async fn receive(&mut self) -> Result<(), LinkFailure> {
        let mut bytes = [0; READ_BYTES];
        let received =
            self.stream.async_io(Interest::READABLE, || receive_message(self.stream, &mut bytes)).await?;
        if received.length == 0 {
            return Err(LinkFailure::Broken(std::io::ErrorKind::UnexpectedEof.into()));
        }
        self.buffer.extend_from_slice(&bytes[..received.length]);
        self.descriptors.extend(received.fd);
        match self.descriptors.len() > MOST_DESCRIPTORS {
            true => Err(LinkFailure::Protocol("more descriptors came than frames".into())),
            false => Ok(()),
        }
    }
}

/// Sends a frame, with a descriptor or without.
///
/// # Errors
/// If the connection ends.
pub(super) async fn send_frame<T: Serialize>(
    stream: &UnixStream,
    frame: &T,
    descriptor: Option<BorrowedFd<'_>>,
) -> Result<(), LinkFailure> {
    let mut bytes = Vec::new();
    append_frame(frame, MAX_STORE_FRAME, &mut bytes)?;
    let (mut sent, mut descriptor) = (0, descriptor);
    while sent < bytes.len() {
        let send = || send_message(stream, &bytes[sent..], descriptor);
        sent += stream.async_io(Interest::WRITABLE, send).await?;
        // It has gone with the first byte.
        descriptor = None;
    }
    Ok(())
}
