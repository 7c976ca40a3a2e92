//! A message becomes bytes, and bytes become a message: the one place that knows the codec.
//!
//! Bincode with variable-length integers, fields and variants by position. To replace it, write `encode` and
//! `decode` anew and raise the protocol; the golden bytes hold the layout until then.

use std::io;
use std::marker::PhantomData;

use bincode::Options;
use serde::Serialize;
use serde::de::{DeserializeOwned, DeserializeSeed};
use tokio_util::bytes::Bytes;

/// No message is longer than this many bytes, whoever sends it.
pub const MAX_FRAME: usize = 8 << 20;

/// Bytes of a frame's length in front of it, big end first.
pub const LENGTH_PREFIX: usize = 4;

/// Why a message has no bytes, or bytes mean no message.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    /// The message does not fit a frame.
    #[error("the message is longer than {} MiB, the most that a link can carry", limit >> 20)]
    TooLong {
        /// The most that would fit, in bytes.
        limit: usize,
    },
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
        if too_long {
            CodecError::TooLong { limit: MAX_FRAME }
        } else {
            CodecError::Undecodable(error.to_string())
        }
    })
}

/// The message of these bytes, all of them.
///
/// # Errors
/// [`CodecError::Undecodable`] when they are no such message, or when bytes are left over.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    codec().deserialize(bytes).map_err(|error| CodecError::Undecodable(error.to_string()))
}

/// Appends the bytes of a message, at most this many, to what is there. It asks the message once only, so
/// that a message may note what is written of it. After an error, a part of it may have been appended.
///
/// # Errors
/// [`CodecError::TooLong`] when they would be more; [`CodecError::Undecodable`] when the message refuses.
pub fn encode_into<T: Serialize + ?Sized>(
    message: &T,
    limit: usize,
    into: &mut Vec<u8>,
) -> Result<(), CodecError> {
    let mut writer = BoundedWriter { into, left: limit };
    let written = bincode::DefaultOptions::new().serialize_into(&mut writer, message);
    written.map_err(|error| {
        let too_long = matches!(*error, bincode::ErrorKind::Io(_));
        if too_long { CodecError::TooLong { limit } } else { CodecError::Undecodable(error.to_string()) }
    })
}

/// The message of these bytes, all of them, where at most this many are one.
///
/// # Errors
/// [`CodecError::TooLong`] when they are more, [`CodecError::Undecodable`] when they are no such message, or
/// when bytes are left over.
pub fn decode_within<T: DeserializeOwned>(bytes: &[u8], limit: usize) -> Result<T, CodecError> {
    decode_seed_within(PhantomData::<T>, bytes, limit)
}

/// As [`decode_within`], of what the seed makes.
///
/// # Errors
/// As [`decode_within`].
pub fn decode_seed_within<'de, S: DeserializeSeed<'de>>(
    seed: S,
    bytes: &'de [u8],
    limit: usize,
) -> Result<S::Value, CodecError> {
    // The limits of bincode do not hold for slices.
    if bytes.len() > limit {
        return Err(CodecError::TooLong { limit });
    }
    let decoded = bincode::DefaultOptions::new().deserialize_seed(seed, bytes);
    decoded.map_err(|error| CodecError::Undecodable(error.to_string()))
}

/// Fails where more than the limit is written.
struct BoundedWriter<'a> {
    into: &'a mut Vec<u8>,
    left: usize,
}

impl io::Write for BoundedWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left = self.left.checked_sub(bytes.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        self.into.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
