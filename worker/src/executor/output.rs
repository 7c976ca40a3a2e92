//! Keeps what a rank prints: one thread for each stream, from the pipe to the log. What else it tells is
//! picked up on the way.
//!
//! Threads of their own, so that a slow disk holds up nothing but the rank's own printing. A pipe that
//! something outside of the rank's family still holds is not waited for.

use std::io::{self, Read};
use std::process::{ChildStderr, ChildStdout};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use cohabit_proto::LogStream;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::gpu_memory::Printed;
use crate::clock::now;
use crate::log::LogWriter;
use crate::progress::{Bars, Sighting};

/// As much as a pipe holds.
const PIECE: usize = 64 * 1024;

/// How long the rest of the output may take once every process has ended.
const DRAIN: Duration = Duration::from_secs(5);

/// What a rank prints.
pub(crate) struct Output {
    bar: Arc<Mutex<Option<Sighting>>>,
    printed: Arc<Mutex<Printed>>,
    /// Closes when both threads have read their pipe to its end.
    ended: mpsc::Receiver<()>,
}

/// What may come through the pipes after the end of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    Nothing,
    /// Somebody outside of the rank's family has them, and the threads still wait for what they print.
    Unread,
}

/// What both threads share.
#[derive(Clone)]
struct Sink {
    log: Arc<Mutex<LogWriter>>,
    bar: Arc<Mutex<Option<Sighting>>>,
    printed: Arc<Mutex<Printed>>,
    _ended: mpsc::Sender<()>,
}

impl Output {
    /// Starts to read both pipes.
    ///
    /// # Errors
    /// When the machine has no more threads.
    pub(crate) fn keep(stdout: ChildStdout, stderr: ChildStderr, log: LogWriter) -> io::Result<Output> {
        let (sender, ended) = mpsc::channel(1);
        let log = Arc::new(Mutex::new(log));
        let sink = Sink { log, bar: Arc::default(), printed: Arc::default(), _ended: sender };
        let (bar, printed) = (Arc::clone(&sink.bar), Arc::clone(&sink.printed));
        keep_stream(LogStream::Stdout, stdout, sink.clone())?;
        keep_stream(LogStream::Stderr, stderr, sink)?;
        Ok(Output { bar, printed, ended })
    }

    /// The last bar that was printed since the last call.
    pub(crate) fn take_bar(&self) -> Option<Sighting> {
        lock(&self.bar).take()
    }

    /// Waits until everything printed is in the log, within reason.
    pub(crate) async fn drained(&mut self) -> Rest {
        match timeout(DRAIN, self.ended.recv()).await {
            Ok(_) => Rest::Nothing,
            Err(_) => Rest::Unread,
        }
    }

    /// The words by which the rank said at its end, if it did, that the GPU has no memory left for it.
    pub(crate) fn out_of_gpu_memory(&self) -> Option<String> {
        std::mem::take(&mut *lock(&self.printed)).out_of_gpu_memory()
    }
}

fn keep_stream(stream: LogStream, pipe: impl Read + Send + 'static, sink: Sink) -> io::Result<()> {
    let name = match stream {
        LogStream::Stdout => "stdout",
        LogStream::Stderr => "stderr",
    };
    thread::Builder::new().name(name.into()).spawn(move || read_to_end(stream, pipe, &sink)).map(drop)
}

fn read_to_end(stream: LogStream, mut pipe: impl Read, sink: &Sink) {
    let mut bars = Bars::default();
    let mut piece = vec![0; PIECE];
    loop {
        match pipe.read(&mut piece) {
            Ok(0) => return,
            Ok(length) => {
                lock(&sink.log).append(stream, now(), &piece[..length]);
                lock(&sink.printed).append(stream, &piece[..length]);
                if let Some(bar) = bars.feed(&piece[..length]) {
                    *lock(&sink.bar) = Some(bar);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
