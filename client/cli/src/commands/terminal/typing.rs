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
pub(super) struct SentKeys {
    attempt: u32,
    number: u64,
    offset: u64,
}

impl SentKeys {
    /// Nothing yet.
    fn none(attempt: u32) -> SentKeys {
        SentKeys { attempt, number: random_number(), offset: 0 }
    }

    /// The next keys, and the size of the window.
    fn piece(&self, owner: TerminalOwner, bytes: Vec<u8>) -> InputPiece {
        let (rank, process) = owner.rank(self.attempt);
        let typist = Some(Typist { number: self.number, size: own_size() });
        InputPiece { rank, process, offset: self.offset, bytes, is_last: false, typist }
    }
}

/// Asks whether this client may type there.
///
/// # Errors
/// When the job has no terminal, or the head does not let this client type there.
pub(super) async fn begin_typing(client: &Client, owner: TerminalOwner) -> Result<SentKeys, CommandError> {
    let sent = SentKeys::none(owner.attempt(client).await?);
    match client.write_input(sent.piece(owner, Vec::new())).await {
        Ok(_) => Ok(sent),
        Err(Error::Refused(refusal)) if refusal.code == RefusalCode::Unavailable => Ok(sent),
        Err(error) => Err(error.into()),
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
    mut sent: SentKeys,
) -> Result<(), CommandError> {
    let mut pause = FIRST_PAUSE;
    loop {
        if keys.shown() > sent.attempt {
            sent = SentKeys::none(keys.shown());
        }
        let bytes = keys.first(INPUT_PIECE);
        let length = bytes.len() as u64;
        match client.write_input(sent.piece(owner, bytes)).await {
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
                    if keys.shown() < latest {
                        keys.clear();
                    }
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
