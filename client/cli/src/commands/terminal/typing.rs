//! Sends keys, and the size of the window, to the terminal of a job.

use std::time::Duration;

use cohabit_client::types::{INPUT_PIECE, InputPiece, RefusalCode, Typist};
use cohabit_client::{Client, Error};
use cohabit_console::CommandError;
use tokio::time::sleep;

use super::key_queue::KeyQueue;
use super::own_terminal::own_size;
use super::owner::{TerminalOwner, random_number};

/// The pauses while the terminal is not there, or takes no more.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// What the job has of this client.
struct SentKeys {
    attempt: u32,
    number: u64,
    offset: u64,
}

impl SentKeys {
    /// Nothing yet.
    fn none(attempt: u32) -> SentKeys {
        SentKeys { attempt, number: random_number(), offset: 0 }
    }
}

/// Sends the keys in the queue to the latest attempt, and the size of the window with them. Never ends with
/// success: it is dropped with the session.
///
/// # Errors
/// When the job has no terminal, or the head does not let this client type there.
pub(super) async fn send_keys(
    client: &Client,
    owner: TerminalOwner,
    keys: &KeyQueue,
) -> Result<(), CommandError> {
    let mut sent = SentKeys::none(owner.attempt(client).await?);
    let mut pause = FIRST_PAUSE;
    loop {
        let bytes = keys.first(INPUT_PIECE);
        let length = bytes.len() as u64;
        let (rank, process) = owner.rank(sent.attempt);
        let typist = Some(Typist { number: sent.number, size: own_size() });
        let piece = InputPiece { rank, process, offset: sent.offset, bytes, is_last: false, typist };
        match client.write_input(piece).await {
            // The worker has forgotten this client, which was silent for long.
            Ok(there) if there < sent.offset => sent = SentKeys::none(sent.attempt),
            Ok(there) => {
                let taken = (there - sent.offset).min(length);
                keys.forget(taken as usize);
                sent.offset = there;
                if taken == length {
                    pause = FIRST_PAUSE;
                    keys.news().await;
                } else {
                    take_pause(&mut pause).await;
                }
            }
            Err(Error::Refused(refusal)) if refusal.code == RefusalCode::Unavailable => {
                take_pause(&mut pause).await;
                let latest = owner.attempt(client).await?;
                if latest > sent.attempt {
                    // What was meant for another shell is not typed into this one.
                    keys.clear();
                    (sent, pause) = (SentKeys::none(latest), FIRST_PAUSE);
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
}

async fn take_pause(pause: &mut Duration) {
    sleep(*pause).await;
    *pause = (*pause * 2).min(LONGEST_PAUSE);
}
