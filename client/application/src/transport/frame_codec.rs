//! Frames as bytes: a length, then the message.

use cohabit_wire::codec::{self, CodecError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::link_failure::LinkFailure;

/// Bytes of the length in front of each frame, the most significant first.
const LENGTH_BYTES: usize = 4;

/// Appends a frame, which has at most so many bytes.
///
/// # Errors
/// If it is longer. Then a part of it may have been appended.
pub(crate) fn append_frame<T: Serialize>(
    frame: &T,
    limit: usize,
    into: &mut Vec<u8>,
) -> Result<(), CodecError> {
    let start = into.len();
    into.extend_from_slice(&[0; LENGTH_BYTES]);
    codec::encode_into(frame, limit, into)?;
    let length = (into.len() - start - LENGTH_BYTES) as u32;
    into[start..start + LENGTH_BYTES].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// The complete frames among the bytes that came.
pub(crate) struct ReceivedFrames<'a> {
    bytes: &'a [u8],
    taken: usize,
    limit: usize,
}

impl<'a> ReceivedFrames<'a> {
    /// None of the bytes are taken; a frame has at most so many.
    pub(crate) const fn new(bytes: &'a [u8], limit: usize) -> ReceivedFrames<'a> {
        ReceivedFrames { bytes, taken: 0, limit }
    }

    /// How many bytes were taken.
    pub(crate) const fn taken(&self) -> usize {
        self.taken
    }

    /// The next frame; none if it is not complete yet.
    ///
    /// # Errors
    /// If it is longer than a frame may be, or is no `T`.
    pub(crate) fn take<T: DeserializeOwned>(&mut self) -> Result<Option<T>, LinkFailure> {
        let Some((length, rest)) = self.bytes[self.taken..].split_first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(*length) as usize;
        if length > self.limit {
            let (limit, text) = (self.limit, "a frame has");
            return Err(LinkFailure::Protocol(format!("{text} {length} bytes, of at most {limit}")));
        }
        let Some(frame) = rest.get(..length) else { return Ok(None) };
        self.taken += LENGTH_BYTES + length;
        Ok(Some(codec::decode_within(frame, self.limit)?))
    }
}
