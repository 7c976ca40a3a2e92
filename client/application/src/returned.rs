//! What a method or a task returned, on its way to the caller.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use cohabit_application_core::{CallError, CallValue, HeldId};
use futures::FutureExt;
use futures::future::{AbortRegistration, Abortable, Aborted, CatchUnwind, LocalBoxFuture};
use serde::Serialize;

use crate::error::Error;
use crate::process::{Hold, MemberProcess, RunningTask};
use crate::values::{EncodedValue, OutgoingValue, VALUE, encode_object, encode_value, held};

/// A running method or task.
pub type CallFuture = LocalBoxFuture<'static, Result<ReturnedValue, CallError>>;

/// A running method or task that can be ended at its next await, and whose panic is caught.
pub(crate) type AbortableCall = Abortable<CatchUnwind<AssertUnwindSafe<CallFuture>>>;

/// How it ended.
pub(crate) type CallEnd = Result<Result<Result<ReturnedValue, CallError>, Box<dyn Any + Send>>, Aborted>;

/// Runs until whoever has the handle for this registration ends it.
pub(crate) fn abortable(future: CallFuture, registration: AbortRegistration) -> AbortableCall {
    Abortable::new(AssertUnwindSafe(future).catch_unwind(), registration)
}

/// What it returned, encoded or stored.
#[derive(Debug)]
pub struct ReturnedValue {
    value: CallValue,
    /// The handles in the value, or the reference of what was stored.
    holds: Vec<Arc<Hold>>,
}

impl ReturnedValue {
    /// The value, the handles that go with it, and what holds them until the core has got it.
    pub(crate) fn into_parts(self) -> (CallValue, Vec<HeldId>, Vec<Arc<Hold>>) {
        let carries = held(&self.holds);
        (self.value, carries, self.holds)
    }
}

/// The end of a function that cannot fail: stores its value if it is large, or if it is that of a lost
/// object.
///
/// # Errors
/// If it cannot be encoded, or there is no room for it.
pub async fn returned<T: Serialize>(value: T) -> Result<ReturnedValue, CallError> {
    let remakes = RunningTask::remakes_now();
    let encoded = match remakes {
        None => encode_value(&value, VALUE),
        Some(_) => encode_object(&value, VALUE).map(|(writer, holds)| OutgoingValue::Large(writer, holds)),
    };
    drop(value);
    match encoded.map_err(CallError::Refused)? {
        OutgoingValue::Inline(EncodedValue { bytes, holds }) => {
            Ok(ReturnedValue { value: CallValue::Inline(bytes), holds })
        }
        OutgoingValue::Large(writer, holds) => {
            let process = MemberProcess::current().map_err(|error| CallError::Refused(error.to_string()))?;
            let (stored, hold) = process.store_value(writer, holds, remakes).await?;
            Ok(ReturnedValue { value: CallValue::Stored(stored), holds: vec![hold] })
        }
    }
}

/// The end of a function.
///
/// # Errors
/// That of the function, as text with its causes; else as [`returned`].
pub async fn returned_or_failed<T: Serialize, E: Into<Error>>(
    result: Result<T, E>,
) -> Result<ReturnedValue, CallError> {
    match result {
        Ok(value) => returned(value).await,
        Err(error) => Err(failed(error)),
    }
}

/// The end of a function that failed.
pub(crate) fn failed(error: impl Into<Error>) -> CallError {
    CallError::Failed(short(error.into().to_string()))
}

/// The longest text of an error that travels, in bytes.
const LONGEST_TEXT: usize = 64 << 10;

/// The text, cut off where it is too long.
pub(crate) fn short(mut text: String) -> String {
    if text.len() > LONGEST_TEXT {
        text.truncate(text.floor_char_boundary(LONGEST_TEXT));
    }
    text
}

/// The message of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    short(text.unwrap_or_else(|| "without a text".into()))
}
