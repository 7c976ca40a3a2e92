//! Arguments and values of calls as bytes, with the handles in them.
//!
//! A handle that is encoded notes itself, so that the process keeps it until the call has ended, and the
//! coordinator hears of it before the call arrives.

use std::cell::RefCell;
use std::fmt::Display;
use std::sync::Arc;

use bytes::Bytes;
use cohabit_application_core::{ActorId, CallError, MAX_ARGUMENTS};
use cohabit_wire::codec::{self, CodecError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::process::ActorHold;

/// The most handles in the arguments or the value of one call.
const MOST_HANDLES: usize = 10_000;

/// A longer scratch buffer is not kept, in bytes.
const KEPT_BYTES: usize = 1 << 20;

thread_local! {
    /// The handles in the value that is being encoded; none if none is.
    static NOTED: RefCell<Option<Vec<Arc<ActorHold>>>> = const { RefCell::new(None) };
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Bytes of a value, with the handles in it.
#[derive(Debug)]
pub(crate) struct EncodedValue {
    pub(crate) bytes: Bytes,
    pub(crate) holds: Vec<Arc<ActorHold>>,
}

impl EncodedValue {
    /// The actors of the handles, once for each handle.
    pub(crate) fn carries(&self) -> Vec<ActorId> {
        self.holds.iter().map(|hold| hold.actor()).collect()
    }
}

/// Encodes arguments or a value: `what` it is, for the error.
///
/// # Errors
/// In words, if it is too large or cannot be encoded.
pub(crate) fn encode<T: Serialize, W: Display>(
    value: &T,
    what: impl FnOnce() -> W,
) -> Result<EncodedValue, String> {
    let outer = NOTED.replace(Some(Vec::new()));
    let mut bytes = SCRATCH.take();
    bytes.clear();
    let written = codec::encode_into(value, MAX_ARGUMENTS, &mut bytes);
    let holds = NOTED.replace(outer).unwrap_or_default();
    let encoded = Bytes::copy_from_slice(&bytes);
    bytes.shrink_to(KEPT_BYTES);
    SCRATCH.set(bytes);
    match written {
        Ok(()) => Ok(EncodedValue { bytes: encoded, holds }),
        Err(CodecError::TooLong { limit }) => Err(format!(
            "{}: larger than {} MiB, the most that a call carries: pass the path of a file, or less at a time",
            what(),
            limit >> 20
        )),
        Err(CodecError::Undecodable(text)) => Err(format!("{}: cannot be encoded ({text})", what())),
    }
}

/// Notes a handle in the value that is being encoded.
///
/// # Errors
/// In words, if none is, or it has too many.
pub(crate) fn note(hold: &Arc<ActorHold>) -> Result<(), String> {
    NOTED.with_borrow_mut(|noted| match noted {
        None => Err("a handle can be sent in arguments and values of calls, and not be stored".into()),
        Some(noted) if noted.len() >= MOST_HANDLES => {
            Err(format!("there are more than {MOST_HANDLES} handles: pass less at a time"))
        }
        Some(noted) => {
            noted.push(Arc::clone(hold));
            Ok(())
        }
    })
}

/// The value of these bytes.
///
/// # Errors
/// In words, if they are none.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8], what: &str) -> Result<T, String> {
    codec::decode_within(bytes, MAX_ARGUMENTS).map_err(|error| {
        format!(
            "{what}: cannot be decoded ({error}): Serialize and Deserialize of the type have to fit, and it may \
             have no untagged or flattened parts"
        )
    })
}

/// The arguments of a method or a task.
///
/// # Errors
/// If the bytes are none.
pub fn decode_arguments<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CallError> {
    decode(bytes, "the arguments").map_err(CallError::Refused)
}
