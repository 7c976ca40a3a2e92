//! What stores of two nodes say to each other, besides the bytes of objects.

use std::io;

use cohabit_application_core::{FetchFailure, MAX_STORE_FRAME, ObjectId};
use cohabit_wire::codec;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::connection::STALL;
use crate::transport::{LinkFailure, append_frame};

/// A part of an object, please.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct FetchRequest {
    /// The object.
    pub(in crate::store) object: ObjectId,
    /// Where the part begins.
    pub(in crate::store) offset: u64,
    /// How many bytes it has.
    pub(in crate::store) length: u64,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) enum FetchReply {
    /// The part follows; the whole object has so many bytes.
    Follows {
        /// The size of the object.
        bytes: u64,
    },
    /// It does not: why.
    Refused(FetchFailure),
}

/// Sends a frame.
///
/// # Errors
/// If the connection breaks, or the frame is too long.
pub(in crate::store) async fn write_frame<T: Serialize>(
    stream: &mut (impl AsyncWrite + Unpin),
    frame: &T,
) -> Result<(), LinkFailure> {
    let mut bytes = Vec::new();
    append_frame(frame, MAX_STORE_FRAME, &mut bytes)?;
    stream.write_all(&bytes).await?;
    Ok(stream.flush().await?)
}

/// Reads a frame, and nothing of what follows it.
///
/// # Errors
/// If the connection ends, or what comes is no frame.
pub(in crate::store) async fn read_frame<T: DeserializeOwned>(
    stream: &mut (impl AsyncRead + Unpin),
) -> Result<T, LinkFailure> {
    let length = stream.read_u32().await?;
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length > MAX_STORE_FRAME {
        let text = format!("a frame has {length} bytes, of at most {MAX_STORE_FRAME}");
        return Err(LinkFailure::Protocol(text));
    }
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).await?;
    Ok(codec::decode_within(&bytes, MAX_STORE_FRAME)?)
}

/// What happens to a connection whose other end does nothing.
pub(in crate::store) fn stalled(_elapsed: tokio::time::error::Elapsed) -> LinkFailure {
    let text = format!("the other store did nothing for {:?}", STALL);
    LinkFailure::Broken(io::Error::new(io::ErrorKind::TimedOut, text))
}
