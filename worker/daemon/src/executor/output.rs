//! Keeps what a rank prints: one thread for each stream, from the pipe to the log. What else it tells is
//! picked up on the way.
//!
//! Threads of their own, so that a slow disk holds up nothing but the rank's own printing. They are there
//! for one rank after the other. A pipe that something outside of the rank's family still holds is not waited
//! for.

use std::io::{self, Read};
use std::process::{ChildStderr, ChildStdout};
use std::sync::mpsc as std_mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use cohabit_types::LogStream;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::gpu_memory::OutOfMemoryDetector;
use crate::clock::now;
use crate::log::LogWriter;
use crate::progress::{BarParser, BarReading};

/// As much as a pipe holds.
const BUFFER_SIZE: usize = 64 * 1024;

/// How long the rest of the output may take once every process has ended.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// What a rank prints.
pub(crate) struct Output {
    bar: Arc<Mutex<Option<BarReading>>>,
    printed: Arc<Mutex<OutOfMemoryDetector>>,
    /// Closes when both threads have read their pipe to its end.
    ended: mpsc::Receiver<()>,
}

/// What may come through the pipes after the end of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RemainingOutput {
    Nothing,
    /// Somebody outside of the rank's family has them, and the threads still wait for what they print.
    Unread,
}

/// The threads that read what ranks print.
#[derive(Default)]
pub(crate) struct Readers {
    stdout: Reader,
    stderr: Reader,
}

/// A thread that reads one pipe after the other, once it has had the first.
#[derive(Default)]
struct Reader(Option<std_mpsc::Sender<Pipe>>);

/// What it reads, and where that goes.
type Pipe = (Box<dyn Read + Send>, Sink);

/// What both threads share.
#[derive(Clone)]
struct Sink {
    log: Arc<Mutex<LogWriter>>,
    bar: Arc<Mutex<Option<BarReading>>>,
    printed: Arc<Mutex<OutOfMemoryDetector>>,
    _ended: mpsc::Sender<()>,
}

impl Output {
    /// Starts to read both pipes.
    ///
    /// # Errors
    /// When the machine has no more threads.
    pub(crate) fn keep(
        readers: &mut Readers,
        stdout: ChildStdout,
        stderr: ChildStderr,
        log: LogWriter,
    ) -> io::Result<Output> {
        let (sender, ended) = mpsc::channel(1);
        let log = Arc::new(Mutex::new(log));
        let sink = Sink { log, bar: Arc::default(), printed: Arc::default(), _ended: sender };
        let (bar, printed) = (Arc::clone(&sink.bar), Arc::clone(&sink.printed));
        readers.stdout.read(LogStream::Stdout, (Box::new(stdout), sink.clone()))?;
        readers.stderr.read(LogStream::Stderr, (Box::new(stderr), sink))?;
        Ok(Output { bar, printed, ended })
    }

    /// The last bar that was printed since the last call.
    pub(crate) fn take_bar(&self) -> Option<BarReading> {
        lock(&self.bar).take()
    }

    /// Waits until everything printed is in the log, within reason.
    pub(crate) async fn drained(&mut self) -> RemainingOutput {
        match timeout(DRAIN_TIMEOUT, self.ended.recv()).await {
            Ok(_) => RemainingOutput::Nothing,
            Err(_) => RemainingOutput::Unread,
        }
    }

    /// The words by which the rank said at its end, if it did, that the GPU has no memory left for it.
    pub(crate) fn out_of_gpu_memory(&self) -> Option<String> {
        std::mem::take(&mut *lock(&self.printed)).out_of_gpu_memory()
    }
}

impl Reader {
    /// Begins to read, after all that it was given before.
    fn read(&mut self, stream: LogStream, pipe: Pipe) -> io::Result<()> {
        let pipe = match &self.0 {
            Some(thread) => match thread.send(pipe) {
                Ok(()) => return Ok(()),
                // It is gone: it was at fault.
                Err(unread) => unread.0,
            },
            None => pipe,
        };
        let (sender, pipes) = std_mpsc::channel();
        let name = match stream {
            LogStream::Stdout => "stdout",
            LogStream::Stderr => "stderr",
        };
        thread::Builder::new().name(name.into()).spawn(move || read_each(stream, &pipes))?;
        self.0 = Some(sender.clone());
        sender.send(pipe).map_err(|_unread| io::ErrorKind::BrokenPipe.into())
    }
}

fn read_each(stream: LogStream, pipes: &std_mpsc::Receiver<Pipe>) {
    let mut piece = vec![0; BUFFER_SIZE];
    for (pipe, sink) in pipes {
        read_to_end(stream, pipe, &sink, &mut piece);
    }
}

fn read_to_end(stream: LogStream, mut pipe: impl Read, sink: &Sink, piece: &mut [u8]) {
    let mut bars = BarParser::default();
    loop {
        match pipe.read(piece) {
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
