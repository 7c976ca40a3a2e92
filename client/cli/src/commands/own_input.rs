//! Sends what `run` reads from its standard input to the job.
//!
//! Each attempt gets the input from its beginning. What was sent is kept for that, up to a limit.

use std::io::{self, IsTerminal as _, Read as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::thread;
use std::time::Duration;

use cohabit_client::types::{Bytes, INPUT_PIECE, InputPiece, JobId, RefusalCode};
use cohabit_client::{Client, Error};
use cohabit_console::{CommandError, CommandErrorKind};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

/// How much of the input is kept for a further attempt.
const KEPT: usize = 16 << 20;
/// Pieces that are read ahead.
const READ_AHEAD: usize = 4;
/// The pauses while the job does not run.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How often it is looked whether a job that has all input so far runs anew.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// Whether this process was given an input: a terminal stays with the person, and `/dev/null` is empty.
pub(super) fn is_given() -> bool {
    let input = io::stdin();
    if input.is_terminal() {
        return false;
    }
    let Ok(found) = std::fs::metadata("/proc/self/fd/0") else { return false };
    let null = std::fs::metadata("/dev/null").map(|null| null.rdev());
    !(found.file_type().is_char_device() && null.is_ok_and(|null| null == found.rdev()))
}

/// The input so far.
#[derive(Debug, Default)]
struct KeptInput {
    /// What may have to be sent, from `from` on.
    bytes: Vec<u8>,
    from: u64,
    is_complete: bool,
}

impl KeptInput {
    fn end(&self) -> u64 {
        self.from + self.bytes.len() as u64
    }

    /// The piece at this offset.
    fn piece(&self, offset: u64) -> (Vec<u8>, bool) {
        let begin = usize::try_from(offset.saturating_sub(self.from)).unwrap_or(usize::MAX);
        let rest = self.bytes.get(begin..).unwrap_or_default();
        let piece = &rest[..rest.len().min(INPUT_PIECE)];
        (piece.to_vec(), self.is_complete && piece.len() == rest.len())
    }

    /// Forgets what the job has, once it is too much to keep for another attempt.
    fn forget_before(&mut self, offset: u64) {
        if self.from > 0 || self.bytes.len() > KEPT {
            let forgotten = usize::try_from(offset.saturating_sub(self.from)).unwrap_or(usize::MAX);
            let forgotten = forgotten.min(self.bytes.len());
            self.bytes.drain(..forgotten);
            self.from += forgotten as u64;
        }
    }
}

/// Sends the input to each attempt of the job. Never ends with success: it is dropped with the job's end.
///
/// # Errors
/// When the input cannot be read or sent.
pub(super) async fn send(client: &Client, job: JobId) -> Result<(), CommandError> {
    let mut pieces = read_own();
    let (mut kept, mut attempt, mut offset, mut pause) = (KeptInput::default(), 0, 0, FIRST_PAUSE);
    loop {
        if attempt > 0 && offset == kept.end() && !kept.is_complete {
            match timeout(LOOK_AGAIN, pieces.recv()).await {
                Ok(Some(Ok(piece))) => kept.bytes.extend(piece),
                Ok(Some(Err(error))) => return Err(unreadable(&error)),
                Ok(None) => kept.is_complete = true,
                // The attempt is asked with an empty piece whether it still runs.
                Err(_) => {}
            }
        }
        let (bytes, is_last) = kept.piece(offset);
        let rank = job.attempt(attempt).rank(0);
        let sent = match attempt {
            0 => None,
            _ => Some(
                client
                    .write_input(InputPiece { rank, process: None, offset, bytes, is_last, typist: None })
                    .await,
            ),
        };
        match sent {
            Some(Ok(there)) => {
                (offset, pause) = (there.clamp(kept.from, kept.end()), FIRST_PAUSE);
                kept.forget_before(offset);
                if !(is_last && offset == kept.end()) {
                    continue;
                }
                sleep(LOOK_AGAIN).await;
            }
            Some(Err(Error::Refused(refusal))) if refusal.code == RefusalCode::Unavailable => {
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            Some(Err(error)) => return Err(error.into()),
            None => {
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
        let latest = client.job(job).record().await?.attempt;
        if latest > attempt {
            (attempt, offset, pause) = (latest, 0, FIRST_PAUSE);
            if kept.from > 0 {
                let message = format!(
                    "attempt {attempt} would lack its beginning, since only {} are kept for a further attempt; let the \
                     job read a file instead",
                    Bytes(KEPT as u64)
                );
                return Err(CommandError::new(CommandErrorKind::Impossible("input-lost"), message));
            }
        }
    }
}

/// Reads the standard input in a thread of its own, which lasts until its end.
pub(super) fn read_own() -> mpsc::Receiver<io::Result<Vec<u8>>> {
    let (send, receive) = mpsc::channel(READ_AHEAD);
    thread::spawn(move || {
        let mut input = io::stdin().lock();
        let mut piece = vec![0; INPUT_PIECE];
        loop {
            let read = input.read(&mut piece).map(|length| piece[..length].to_vec());
            let is_end = read.as_ref().is_ok_and(Vec::is_empty);
            if is_end || send.blocking_send(read).is_err() {
                return;
            }
        }
    });
    receive
}

pub(super) fn unreadable(error: &io::Error) -> CommandError {
    CommandError::new(
        CommandErrorKind::InputOutput,
        format!("the standard input cannot be read: {error}. To send none, add < /dev/null"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_kept_whole_up_to_the_limit_and_then_only_what_the_job_lacks() {
        let mut kept = KeptInput { bytes: (0..=255).cycle().take(KEPT).collect(), ..KeptInput::default() };
        kept.forget_before(KEPT as u64);
        assert_eq!((kept.from, kept.bytes.len()), (0, KEPT), "another attempt would read it");
        kept.bytes.extend([1, 2, 3]);
        kept.forget_before(KEPT as u64 + 1);
        assert_eq!(
            (kept.from, kept.bytes.as_slice(), kept.end()),
            (KEPT as u64 + 1, &[2, 3][..], KEPT as u64 + 3)
        );
        kept.forget_before(KEPT as u64 + 3);
        assert_eq!((kept.from, kept.end()), (KEPT as u64 + 3, KEPT as u64 + 3));
    }

    #[test]
    fn the_last_piece_is_known_only_with_the_end() {
        let mut kept = KeptInput { bytes: vec![7; INPUT_PIECE + 1], ..KeptInput::default() };
        assert_eq!(kept.piece(INPUT_PIECE as u64), (vec![7], false));
        kept.is_complete = true;
        assert_eq!(kept.piece(0), (vec![7; INPUT_PIECE], false));
        assert_eq!(kept.piece(INPUT_PIECE as u64), (vec![7], true));
        assert_eq!(kept.piece(INPUT_PIECE as u64 + 1), (vec![], true));
    }
}
