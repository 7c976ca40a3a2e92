//! Prints the output of jobs on a thread of its own.
//!
//! A reader of stdout may pause for as long as it likes, for example a pager. If the output were written on
//! the thread of the event loop, Ctrl-C and the link to the head would wait for that reader.

use std::thread;

use cohabit_client::LogPart;
use cohabit_console::{CommandError, CommandErrorKind, output};
use tokio::sync::{mpsc, oneshot};

/// Parts that wait for the reader before the link to the head is held back.
const MAX_QUEUED_PARTS: usize = 4;

/// Prints parts of logs in the order in which they are queued.
pub(crate) struct LogWriter {
    queue: mpsc::Sender<LogPart>,
    result: oneshot::Receiver<Result<(), CommandError>>,
}

impl LogWriter {
    /// Starts the thread, which prints each part with `print` until it fails.
    pub(crate) fn start(print: fn(&LogPart) -> Result<(), CommandError>) -> LogWriter {
        let (queue, mut parts) = mpsc::channel(MAX_QUEUED_PARTS);
        let (ended, result) = oneshot::channel();
        thread::spawn(move || {
            let mut printed = Ok(());
            while printed.is_ok() {
                let Some(part) = parts.blocking_recv() else { break };
                printed = print(&part);
            }
            // From here on, queueing a part fails.
            drop(parts);
            // Nobody waits for the result of a command that was interrupted.
            let _ = ended.send(printed);
        });
        LogWriter { queue, result }
    }

    /// Queues a part. Waits while the queue is full; fails once printing has failed.
    pub(crate) async fn write(&mut self, part: LogPart) -> Result<(), CommandError> {
        match self.queue.send(part).await {
            Ok(()) => Ok(()),
            Err(_) => result_of(&mut self.result).await,
        }
    }

    /// Waits until everything is printed.
    pub(crate) async fn finish(mut self) -> Result<(), CommandError> {
        drop(self.queue);
        result_of(&mut self.result).await
    }
}

async fn result_of(result: &mut oneshot::Receiver<Result<(), CommandError>>) -> Result<(), CommandError> {
    result.await.unwrap_or_else(|_| {
        Err(CommandError::new(CommandErrorKind::Internal, "the thread that prints the output panicked"))
    })
}

/// Prints a message without waiting for stderr, which may be blocked like stdout.
pub(crate) fn print_message_in_background(text: String) {
    thread::spawn(move || output::print_message(&text));
}
