//! A message becomes bytes, and bytes become a message: the one place that knows the codec.
//!
//! Bincode with variable-length integers, fields and variants by position. To replace it, write `encode` and
//! `decode` anew and raise the protocol; the golden bytes hold the layout until then.

use bincode::Options;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::bytes::Bytes;

/// No message is longer than this many bytes, whoever sends it.
pub const MAX_FRAME: usize = 8 << 20;

/// Bytes of a frame's length in front of it, big end first.
pub const LENGTH_PREFIX: usize = 4;

/// Why a message has no bytes, or bytes mean no message.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    /// The message does not fit a frame.
    #[error("the message is longer than {} MiB, the most that a link can carry", MAX_FRAME >> 20)]
    TooLong,
    /// The bytes are no such message.
    #[error("the received bytes are not a message of this protocol ({0})")]
    Undecodable(String),
}

fn codec() -> impl Options {
    bincode::DefaultOptions::new().with_limit(MAX_FRAME as u64)
}

/// The bytes of a message.
///
/// # Errors
/// [`CodecError::TooLong`] when they would not fit a frame.
pub fn encode<T: Serialize>(message: &T) -> Result<Bytes, CodecError> {
    let encoded = codec().serialize(message).map(Bytes::from);
    encoded.map_err(|error| {
        let too_long = matches!(*error, bincode::ErrorKind::SizeLimit);
        if too_long { CodecError::TooLong } else { CodecError::Undecodable(error.to_string()) }
    })
}

/// The message of these bytes, all of them.
///
/// # Errors
/// [`CodecError::Undecodable`] when they are no such message, or when bytes are left over.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    codec().deserialize(bytes).map_err(|error| CodecError::Undecodable(error.to_string()))
}

#[cfg(test)]
mod tests;
