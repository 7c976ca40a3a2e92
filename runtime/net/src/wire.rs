//! How a message becomes bytes, and bytes become frames: the one place that knows the codec.
//!
//! Bincode with variable-length integers, in frames led by their length in four bytes, big end first. To swap
//! the codec, write `encode` and `decode` anew and raise [`PROTOCOL_VERSION`](crate::PROTOCOL_VERSION); the
//! golden bytes in the tests hold the layout until then.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bincode::Options;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::bytes::{Bytes, BytesMut};
use tokio_util::codec::{Decoder, Encoder, Framed, LengthDelimitedCodec};

/// No message is longer than this many bytes, whoever sends it.
pub const MAX_FRAME: usize = 8 << 20;

/// Bytes of a frame's length in front of it.
pub(crate) const LENGTH_PREFIX: usize = 4;

/// A byte stream, cut into frames.
pub(crate) type Frames<IO> = Framed<IO, Framing>;

/// Why a message has no bytes, or bytes mean no message.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WireError {
    /// It would not fit into a frame.
    #[error("the message is longer than {} MiB, the most that a link carries", MAX_FRAME >> 20)]
    TooLong,
    /// They are no such message.
    #[error("what arrived is no message of this protocol ({0})")]
    Garbled(String),
}

fn codec() -> impl Options {
    bincode::DefaultOptions::new().with_limit(MAX_FRAME as u64)
}

/// The bytes of a message.
pub(crate) fn encode<T: Serialize>(message: &T) -> Result<Bytes, WireError> {
    let encoded = codec().serialize(message).map(Bytes::from);
    encoded.map_err(|error| {
        let too_long = matches!(*error, bincode::ErrorKind::SizeLimit);
        if too_long { WireError::TooLong } else { WireError::Garbled(error.to_string()) }
    })
}

/// The message of these bytes, all of them.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, WireError> {
    codec().deserialize(bytes).map_err(|error| WireError::Garbled(error.to_string()))
}

/// Cuts a stream into frames, of which none may be longer than `longest`.
pub(crate) fn frames<IO: AsyncRead + AsyncWrite>(io: IO, longest: usize) -> Frames<IO> {
    Framed::new(io, framing(longest))
}

/// How bytes are cut into frames.
pub(crate) fn framing(longest: usize) -> Framing {
    let codec = LengthDelimitedCodec::builder()
        .length_field_length(LENGTH_PREFIX)
        .max_frame_length(longest)
        .new_codec();
    Framing { codec, begun: PartialFrameFlag::default() }
}

/// A codec that says whether a frame has begun and is not whole.
#[derive(Debug)]
pub(crate) struct Framing {
    codec: LengthDelimitedCodec,
    begun: PartialFrameFlag,
}

/// Whether a frame has begun and is not whole, as its codec last saw.
#[derive(Debug, Default, Clone)]
pub(crate) struct PartialFrameFlag(Arc<AtomicBool>);

impl Framing {
    pub(crate) fn begun(&self) -> PartialFrameFlag {
        self.begun.clone()
    }
}

impl PartialFrameFlag {
    pub(crate) fn is_true(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Decoder for Framing {
    type Item = BytesMut;
    type Error = io::Error;

    fn decode(&mut self, arrived: &mut BytesMut) -> io::Result<Option<BytesMut>> {
        // The codec takes the length away as soon as it is there, so what is left does not tell by itself.
        let was_begun = self.begun.is_true() || !arrived.is_empty();
        let frame = self.codec.decode(arrived)?;
        self.begun.0.store(frame.is_none() && was_begun, Ordering::Relaxed);
        Ok(frame)
    }
}

impl Encoder<Bytes> for Framing {
    type Error = io::Error;

    fn encode(&mut self, frame: Bytes, to: &mut BytesMut) -> io::Result<()> {
        self.codec.encode(frame, to)
    }
}

#[cfg(test)]
mod tests;
