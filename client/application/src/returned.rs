//! What a method or a task returned, on its way to the caller.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use cohabit_application_core::CallError;
use futures::FutureExt;
use futures::future::{AbortRegistration, Abortable, Aborted, CatchUnwind, LocalBoxFuture};
use serde::Serialize;

use crate::error::Error;
use crate::values::{EncodedValue, encode};

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

/// What it returned, encoded.
#[derive(Debug)]
pub struct ReturnedValue(pub(crate) EncodedValue);

/// The end of a function that cannot fail.
///
/// # Errors
/// If its value is too large or cannot be encoded.
pub fn returned<T: Serialize>(value: T) -> Result<ReturnedValue, CallError> {
    encode(&value, || "the value of the call").map(ReturnedValue).map_err(CallError::Refused)
}

/// The end of a function.
///
/// # Errors
/// That of the function, as text with its causes; else as [`returned`].
pub fn returned_or_failed<T: Serialize, E: Into<Error>>(
    result: Result<T, E>,
) -> Result<ReturnedValue, CallError> {
    match result {
        Ok(value) => returned(value),
        Err(error) => Err(CallError::Failed(short(error.into().to_string()))),
    }
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
