//! Writes what arrives on a thread of its own: a disk, or a reader of the output, may pause for as long as
//! it likes, and Ctrl-C and the link to the head must not wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use cohabit_transfer::{ReceiveError, Received, Receiver};
use tokio::sync::{mpsc, oneshot};

/// Pieces that may wait before no more are asked for.
const WAITING: usize = 2;

/// So many bytes are written before it is looked whether the copy was given up: a few entries.
const SLICE: usize = 4 << 10;

/// Takes pieces in their order.
pub(super) struct PieceWriter {
    /// None once all were taken.
    pieces: Option<mpsc::Sender<Vec<u8>>>,
    /// None once it was told.
    ended: Option<oneshot::Receiver<Result<Received, ReceiveError>>>,
    progress: Arc<WriteProgress>,
}

/// How much is written of how much, in bytes.
#[derive(Debug, Default)]
struct WriteProgress {
    written: AtomicU64,
    announced: AtomicU64,
    /// Whether the copy was given up.
    is_given_up: AtomicBool,
}

impl PieceWriter {
    pub(super) fn start(receiver: Receiver) -> PieceWriter {
        let (pieces, waiting) = mpsc::channel(WAITING);
        let (tell, ended) = oneshot::channel();
        let progress = Arc::new(WriteProgress::default());
        let written = Arc::clone(&progress);
        thread::spawn(move || {
            // The receiver is gone when this is told, and with it what is not whole.
            let received = write_all(waiting, receiver, &written);
            let _ = tell.send(received);
        });
        PieceWriter { pieces: Some(pieces), ended: Some(ended), progress }
    }

    /// Takes a piece; false once writing has failed.
    pub(super) async fn write(&self, piece: Vec<u8>) -> bool {
        match &self.pieces {
            Some(pieces) => pieces.send(piece).await.is_ok(),
            None => false,
        }
    }

    /// How much is written of how much, in bytes.
    pub(super) fn progress(&self) -> (u64, u64) {
        (self.progress.written.load(Ordering::Relaxed), self.progress.announced.load(Ordering::Relaxed))
    }

    /// Writes no more: what is not whole is removed.
    pub(super) fn give_up(&self) {
        self.progress.is_given_up.store(true, Ordering::Relaxed);
    }

    /// Waits until everything is written, or what is not whole is removed.
    pub(super) async fn finish(&mut self) -> Result<Received, ReceiveError> {
        self.pieces = None;
        let Some(ended) = &mut self.ended else { return Err(ReceiveError::CutOff) };
        let told = ended.await;
        self.ended = None;
        told.unwrap_or_else(|_| Err(ReceiveError::Invalid("the writing thread panicked".to_owned())))
    }
}

fn write_all(
    mut waiting: mpsc::Receiver<Vec<u8>>,
    mut receiver: Receiver,
    progress: &WriteProgress,
) -> Result<Received, ReceiveError> {
    while let Some(piece) = waiting.blocking_recv() {
        for slice in piece.chunks(SLICE) {
            if progress.is_given_up.load(Ordering::Relaxed) {
                return Err(ReceiveError::CutOff);
            }
            receiver.take(slice)?;
        }
        progress.written.store(receiver.received().bytes, Ordering::Relaxed);
        progress.announced.store(receiver.received().announced, Ordering::Relaxed);
    }
    receiver.finish()
}
