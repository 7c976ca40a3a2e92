//! Prints the output of jobs on a thread of its own.
//!
//! A reader of stdout, such as a pager, may pause for as long as it likes. If the output were written on the
//! thread of the event loop, Ctrl-C and the link to the head would wait for that reader.

use std::thread;

use cohabit_console::{CommandError, CommandErrorKind, output};
use tokio::sync::{mpsc, oneshot};

/// Parts that may wait for the reader before the link to the head is held back.
const MAX_QUEUED_PARTS: usize = 4;

/// Prints parts of logs in the order in which they are queued.
pub(crate) struct LogPrinter<T> {
    queue: mpsc::Sender<T>,
    result: oneshot::Receiver<Result<(), CommandError>>,
}

impl<T: Send + 'static> LogPrinter<T> {
    /// Starts the thread, which prints each part with `print` until it fails.
    pub(crate) fn start(
        mut print: impl FnMut(&T) -> Result<(), CommandError> + Send + 'static,
    ) -> LogPrinter<T> {
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
        LogPrinter { queue, result }
    }

    /// Queues a part. Waits while the queue is full; fails once printing has failed.
    pub(crate) async fn write(&mut self, part: T) -> Result<(), CommandError> {
        match self.queue.send(part).await {
            Ok(()) => Ok(()),
            Err(_) => result_of(&mut self.result).await,
        }
    }

    /// Prints parts until there are no more, or reading them fails: what was read before is printed, too.
    pub(crate) async fn print_all(
        mut self,
        mut next: impl AsyncFnMut() -> Result<Option<T>, CommandError>,
    ) -> Result<(), CommandError> {
        let ended = loop {
            match next().await {
                Ok(Some(part)) => self.write(part).await?,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        self.finish().await?;
        ended
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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex, mpsc};
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;
    use crate::process::block_on;

    #[test]
    fn parts_are_printed_in_order_before_the_end() {
        let printed = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&printed);
        let ended = block_on(async {
            let mut writer = LogPrinter::start(move |part: &u32| {
                record.lock().unwrap().push(*part);
                Ok(())
            });
            for part in 0..100 {
                writer.write(part).await?;
            }
            writer.finish().await
        });
        assert_eq!(ended, Ok(()));
        assert_eq!(*printed.lock().unwrap(), (0..100).collect::<Vec<u32>>());
    }

    #[test]
    fn a_closed_output_ends_the_writing() {
        let closed = CommandError::new(CommandErrorKind::ClosedPipe, "closed");
        let error = closed.clone();
        let ended = block_on(async {
            let mut writer = LogPrinter::start(move |_: &u32| Err(error.clone()));
            loop {
                writer.write(1).await?;
            }
        });
        assert_eq!(ended, Err::<(), _>(closed));
    }

    #[test]
    fn a_reader_that_pauses_does_not_block_the_event_loop() {
        let (resume, paused) = mpsc::channel::<()>();
        let ended = block_on(async {
            let mut writer = LogPrinter::start(move |_: &u32| {
                let _ = paused.recv();
                Ok(())
            });
            let filled = async {
                loop {
                    writer.write(1).await?;
                }
            };
            let filled: Result<Result<(), CommandError>, _> =
                timeout(Duration::from_millis(50), filled).await;
            assert!(filled.is_err(), "the queue is full, and the timer still runs");
            drop(resume);
            writer.finish().await
        });
        assert_eq!(ended, Ok(()));
    }
}
