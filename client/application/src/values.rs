//! Arguments and values of calls as bytes, with the handles and references in them.
//!
//! A handle that is encoded notes itself, so that the process keeps it until the call has ended, and the
//! coordinator hears of it before the call arrives. A small value travels with its call; a larger one is
//! written as an object of the node's store.

use std::cell::RefCell;
use std::fmt::Display;
use std::sync::Arc;

use bytes::Bytes;
use cohabit_application_core::{CallError, HeldId, MAX_ARGUMENTS, MAX_INLINE, ObjectId};
use cohabit_memory::{MemoryMapping, ObjectWriter, read_object_seed};
use cohabit_wire::codec::{self, CodecError};
use serde::Serialize;
use serde::de::{DeserializeOwned, DeserializeSeed};

use crate::process::Hold;

/// The most handles and references in the arguments or the value of one call.
const MOST_HANDLES: usize = 10_000;

/// A longer scratch buffer is not kept, in bytes.
const KEPT_BYTES: usize = 1 << 20;

thread_local! {
    /// What was found in the value that is being encoded; none if none is.
    static NOTED: RefCell<Option<NotedHandles>> = const { RefCell::new(None) };
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Handles and references in a value.
#[derive(Debug, Default)]
struct NotedHandles {
    holds: Vec<Arc<Hold>>,
    /// References whose values the callee gets.
    needs: Vec<ObjectId>,
}

/// Encoded arguments.
#[derive(Debug)]
pub(crate) struct EncodedArguments {
    pub(crate) value: EncodedValue,
    /// References in them whose values the callee gets.
    pub(crate) needs: Vec<ObjectId>,
}

/// Bytes of a value, with the handles in it.
#[derive(Debug)]
pub(crate) struct EncodedValue {
    pub(crate) bytes: Bytes,
    pub(crate) holds: Vec<Arc<Hold>>,
}

/// A value on its way into a call or a reference.
#[derive(Debug)]
pub(crate) enum OutgoingValue {
    /// It is small.
    Inline(EncodedValue),
    /// It is to be stored, with the handles in it.
    Large(ObjectWriter, Vec<Arc<Hold>>),
}

/// The bytes of a value, wherever they were.
#[derive(Debug)]
pub(crate) enum ValueBytes {
    Inline(Bytes),
    Object(MemoryMapping),
}

impl EncodedValue {
    /// What the handles stand for, once for each.
    pub(crate) fn carries(&self) -> Vec<HeldId> {
        held(&self.holds)
    }
}

/// What handles stand for, once for each.
pub(crate) fn held(holds: &[Arc<Hold>]) -> Vec<HeldId> {
    holds.iter().map(|hold| hold.held()).collect()
}

/// Encodes arguments: `what` they are, for the error.
///
/// # Errors
/// In words, if they are too large or cannot be encoded.
pub(crate) fn encode_arguments<T: Serialize, W: Display>(
    arguments: &T,
    what: impl FnOnce() -> W,
) -> Result<EncodedArguments, String> {
    let (written, noted) = noting(|| write(arguments, MAX_ARGUMENTS));
    let bytes = written.map_err(|error| refusal(&error, what()))?;
    Ok(EncodedArguments { value: EncodedValue { bytes, holds: noted.holds }, needs: noted.needs })
}

/// Encodes an item of a stream.
///
/// # Errors
/// In words, if it is too large or cannot be encoded.
pub(crate) fn encode_item<T: Serialize>(item: &T) -> Result<EncodedValue, String> {
    let (written, noted) = noting(|| write(item, MAX_ARGUMENTS));
    let bytes = written.map_err(|error| refusal(&error, ITEM))?;
    Ok(EncodedValue { bytes, holds: noted.holds })
}

/// Encodes a value: `what` it is, for the error.
///
/// # Errors
/// In words, if it is too large or cannot be encoded.
pub(crate) fn encode_value<T: Serialize>(value: &T, what: &str) -> Result<OutgoingValue, String> {
    let (written, noted) = noting(|| write(value, MAX_INLINE));
    match written {
        Ok(bytes) => return Ok(OutgoingValue::Inline(EncodedValue { bytes, holds: noted.holds })),
        Err(CodecError::TooLong { .. }) => {}
        Err(error @ CodecError::Undecodable(_)) => return Err(refusal(&error, what)),
    }
    encode_object(value, what).map(|(writer, holds)| OutgoingValue::Large(writer, holds))
}

/// Prepares a value of any size for the store: `what` it is, for the error. Returns the handles in it, too.
///
/// # Errors
/// In words, if it cannot be encoded.
pub(crate) fn encode_object<T: Serialize>(
    value: &T,
    what: &str,
) -> Result<(ObjectWriter, Vec<Arc<Hold>>), String> {
    let (writer, noted) = noting(|| ObjectWriter::new(value));
    Ok((writer.map_err(|error| format!("{what}: {error}"))?, noted.holds))
}

/// What an item of a stream is called in errors.
pub(crate) const ITEM: &str = "an item of the stream";

/// What the value of a call is called in errors.
pub(crate) const VALUE: &str = "the value of the call";

fn write<T: Serialize>(value: &T, limit: usize) -> Result<Bytes, CodecError> {
    let mut bytes = SCRATCH.take();
    bytes.clear();
    let written = codec::encode_into(value, limit, &mut bytes);
    let encoded = written.map(|()| Bytes::copy_from_slice(&bytes));
    bytes.shrink_to(KEPT_BYTES);
    SCRATCH.set(bytes);
    encoded
}

fn refusal(error: &CodecError, what: impl Display) -> String {
    match error {
        CodecError::TooLong { limit } => format!(
            "{what}: larger than {} MiB, the most that a call carries: cohabit::put what is large, and pass \
             the reference",
            limit >> 20
        ),
        CodecError::Undecodable(text) => format!("{what}: cannot be encoded ({text})"),
    }
}

/// Does work of the user's type that encodes a value. Returns the handles in it, too.
fn noting<R>(work: impl FnOnce() -> R) -> (R, NotedHandles) {
    let _outer = OuterNotes(NOTED.replace(Some(NotedHandles::default())));
    let result = work();
    (result, NOTED.take().unwrap_or_default())
}

/// What was being encoded before; it is again when this is dropped, also after a panic.
struct OuterNotes(Option<NotedHandles>);

impl Drop for OuterNotes {
    fn drop(&mut self) {
        NOTED.replace(self.0.take());
    }
}

/// Notes a handle or a reference in the value that is being encoded.
///
/// # Errors
/// In words, if none is, or it has too many.
pub(crate) fn note(hold: &Arc<Hold>) -> Result<(), String> {
    NOTED.with_borrow_mut(|noted| match noted {
        None => Err(
            "handles and references travel in arguments and values of calls and in objects: they cannot be stored"
                .into(),
        ),
        Some(noted) if noted.holds.len() >= MOST_HANDLES => {
            Err(format!("there are more than {MOST_HANDLES} handles and references: pass less at a time"))
        }
        Some(noted) => {
            noted.holds.push(Arc::clone(hold));
            Ok(())
        }
    })
}

/// Notes a reference whose value the callee gets.
///
/// # Errors
/// As [`note`].
pub(crate) fn note_need(hold: &Arc<Hold>, object: ObjectId) -> Result<(), String> {
    note(hold)?;
    NOTED.with_borrow_mut(|noted| noted.iter_mut().for_each(|noted| noted.needs.push(object)));
    Ok(())
}

/// The value of bytes that came with a call: `what` it is, for the error.
///
/// # Errors
/// In words, if they are none.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8], what: &str) -> Result<T, String> {
    codec::decode_within(bytes, MAX_ARGUMENTS).map_err(|error| misfit(what, &error))
}

fn misfit(what: &str, error: &dyn Display) -> String {
    format!(
        "{what}: cannot be decoded ({error}): Serialize and Deserialize of the type have to fit, and it may \
         have no untagged or flattened parts"
    )
}

impl ValueBytes {
    /// What the seed makes of them: `what` it is, for the error.
    ///
    /// # Errors
    /// In words, if they are none.
    pub(crate) fn decode_seed<'de, S: DeserializeSeed<'de>>(
        &'de self,
        seed: S,
        what: &str,
    ) -> Result<S::Value, CallError> {
        let decoded = match self {
            ValueBytes::Inline(bytes) => {
                codec::decode_seed_within(seed, bytes, MAX_ARGUMENTS).map_err(|error| misfit(what, &error))
            }
            ValueBytes::Object(mapping) => {
                read_object_seed(seed, mapping).map_err(|error| misfit(what, &error))
            }
        };
        decoded.map_err(CallError::Refused)
    }
}
