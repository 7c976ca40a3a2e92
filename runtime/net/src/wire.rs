//! How a message becomes bytes, and bytes become frames: the one place that knows the codec.
//!
//! Bincode with variable-length integers, in frames led by their length in four bytes, big end first. To swap
//! the codec, write `encode` and `decode` anew and raise [`PROTOCOL_VERSION`](crate::PROTOCOL_VERSION); the
//! golden bytes in the tests hold the layout until then.

use bincode::Options;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::bytes::Bytes;
use tokio_util::codec::{Framed, LengthDelimitedCodec};

/// No message is longer than this many bytes, whoever sends it.
pub const MAX_FRAME: usize = 8 << 20;

/// A byte stream, cut into frames.
pub(crate) type Frames<IO> = Framed<IO, LengthDelimitedCodec>;

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
pub(crate) fn framing(longest: usize) -> LengthDelimitedCodec {
    LengthDelimitedCodec::builder().max_frame_length(longest).new_codec()
}

#[cfg(test)]
mod tests;
