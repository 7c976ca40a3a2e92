//! The stream that a task returned, on its way to the caller.

use std::pin::pin;

use cohabit_application_core::CallError;
use futures::{Stream, StreamExt};
use serde::Serialize;

use crate::error::Error;
use crate::process::ItemSender;
use crate::returned::{ReturnedValue, failed, returned};
use crate::values::encode_item;

/// Sends the items of a stream as they are made, and pauses while too many are unread. It has no value.
///
/// # Errors
/// The first error in the stream, as text with its causes; `Refused` if an item is too large or cannot be
/// encoded.
pub async fn send_items<S, T, E>(stream: S) -> Result<ReturnedValue, CallError>
where
    S: Stream<Item = Result<T, E>>,
    T: Serialize,
    E: Into<Error>,
{
    let sender = ItemSender::current()?;
    let mut stream = pin!(stream);
    loop {
        sender.room().await;
        match stream.next().await {
            Some(Ok(item)) => {
                let encoded = encode_item(&item).map_err(CallError::Refused)?;
                sender.send(encoded)?;
            }
            Some(Err(error)) => return Err(failed(error)),
            None => return returned(()).await,
        }
    }
}
