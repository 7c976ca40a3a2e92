//! Stores what a rank prints: one thread for each stream copies from the pipe to the log, from the first
//! piece on, so that a rank that prints nothing wakes no thread. Progress bars and out-of-memory messages
//! are detected on the way.
//!
//! What also goes to a file of the job is written there after the log. A file that cannot be written any more
//! is given up, and the log says so.
//!
//! A slow disk delays only these threads, and so only the rank's own printing. The threads serve one rank
//! after the other. A pipe that a process outside the rank still holds open is not waited for.

use std::fs::File;
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::OwnedFd;
use std::process::Child;
use std::sync::mpsc as std_mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use cohabit_host::clock::now;
use cohabit_host::log::LogWriter;
use cohabit_host::oom_detector::OutOfMemoryDetector;
use cohabit_host::progress::{BarParser, BarReading};
use cohabit_types::LogStream;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use crate::error_log::log_error;
use crate::output_files::OpenOutput;
use crate::terminal::Terminal;

/// The capacity of a pipe.
const BUFFER_SIZE: usize = 64 * 1024;

/// The pause before another try to start a thread.
const THREAD_PAUSE: Duration = Duration::from_secs(1);

/// How much of the first piece is read before a thread reads on.
const FIRST_SIZE: usize = 1_024;

/// How long reading the rest of the output may take once every process has ended.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// The output of a rank.
pub(crate) struct Output {
    bar: Arc<Mutex<Option<BarReading>>>,
    oom_detector: Arc<Mutex<OutOfMemoryDetector>>,
    /// Closes when both threads have read their pipe to its end.
    ended: mpsc::Receiver<()>,
}

/// What a rank prints to.
pub(crate) struct RankStreams {
    stdout: PrintedStream,
    /// None on a terminal, where all is one stream.
    stderr: Option<PrintedStream>,
}

/// A stream to which a process prints.
enum PrintedStream {
    /// A pipe, of which no thread knows before something is printed.
    Silent(OwnedFd),
    Read(PrintedText),
}

/// What a thread reads from.
pub(crate) type PrintedText = Box<dyn Read + Send>;

impl RankStreams {
    /// Those of a process that was just started, perhaps with this terminal.
    ///
    /// # Errors
    /// When this process has too many open files.
    pub(crate) fn of(child: &mut Child, terminal: Option<&Terminal>) -> io::Result<RankStreams> {
        if let Some(terminal) = terminal {
            let stdout = PrintedStream::Read(Box::new(terminal.output()?));
            return Ok(RankStreams { stdout, stderr: None });
        }
        let pipes = child.stdout.take().zip(child.stderr.take());
        let (stdout, stderr) = pipes.expect("without a terminal both streams are pipes");
        let (stdout, stderr) =
            (PrintedStream::Silent(stdout.into()), Some(PrintedStream::Silent(stderr.into())));
        Ok(RankStreams { stdout, stderr })
    }

    /// The same streams, each read through another reader.
    pub(crate) fn read_through(self, reader: impl Fn(PrintedText) -> PrintedText) -> RankStreams {
        let map = |stream| match stream {
            PrintedStream::Silent(pipe) => PrintedStream::Read(reader(Box::new(PipeReader::from(pipe)))),
            PrintedStream::Read(text) => PrintedStream::Read(reader(text)),
        };
        RankStreams { stdout: map(self.stdout), stderr: self.stderr.map(map) }
    }
}

/// Whether the pipes may still carry output after the end of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RemainingOutput {
    Nothing,
    /// A process outside the rank holds a pipe open, and its thread still reads.
    Unread,
}

/// The threads that read the output of ranks.
#[derive(Default)]
pub(crate) struct Readers {
    stdout: Reader,
    stderr: Reader,
}

/// A thread that reads one pipe after the other; started with the first pipe. Clones are the same thread.
#[derive(Default, Clone)]
struct Reader(Arc<Mutex<Option<std_mpsc::Sender<Pipe>>>>);

/// A pipe, and where its content goes.
struct Pipe {
    /// What was read of it already.
    begin: Vec<u8>,
    from: PrintedText,
    sink: Sink,
    /// The file of the job that it goes to as well.
    copy: Option<File>,
}

/// Where both threads write.
#[derive(Clone)]
struct Sink {
    log: Arc<Mutex<LogWriter>>,
    bar: Arc<Mutex<Option<BarReading>>>,
    oom_detector: Arc<Mutex<OutOfMemoryDetector>>,
    _ended: mpsc::Sender<()>,
}

impl Output {
    /// Starts reading them.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(crate) fn store(
        readers: &mut Readers,
        streams: RankStreams,
        log: LogWriter,
        files: OpenOutput,
    ) -> io::Result<Output> {
        let (sender, ended) = mpsc::channel(1);
        let log = Arc::new(Mutex::new(log));
        let sink = Sink { log, bar: Arc::default(), oom_detector: Arc::default(), _ended: sender };
        let (bar, oom_detector) = (Arc::clone(&sink.bar), Arc::clone(&sink.oom_detector));
        let RankStreams { stdout, stderr } = streams;
        if let Some(stderr) = stderr {
            readers.stderr.store(LogStream::Stderr, stderr, sink.clone(), files.stderr)?;
        }
        readers.stdout.store(LogStream::Stdout, stdout, sink, files.stdout)?;
        Ok(Output { bar, oom_detector, ended })
    }

    /// The last progress bar printed since the last call.
    pub(crate) fn take_bar(&self) -> Option<BarReading> {
        lock(&self.bar).take()
    }

    /// Waits until all output is in the log, for a limited time.
    pub(crate) async fn drain(&mut self) -> RemainingOutput {
        match self.is_drained(DRAIN_TIMEOUT).await {
            true => RemainingOutput::Nothing,
            false => RemainingOutput::Unread,
        }
    }

    /// Whether all output is in the log, after at most this time.
    pub(crate) async fn is_drained(&mut self, limit: Duration) -> bool {
        timeout(limit, self.ended.recv()).await.is_ok()
    }

    /// The message by which the rank reported at its end that the GPU has no memory left, if it did.
    pub(crate) fn out_of_gpu_memory(&self) -> Option<String> {
        std::mem::take(&mut *lock(&self.oom_detector)).out_of_gpu_memory()
    }
}

impl Reader {
    /// Reads this stream after those that it was given before.
    fn store(
        &self,
        stream: LogStream,
        from: PrintedStream,
        sink: Sink,
        copy: Option<File>,
    ) -> io::Result<()> {
        let pipe = match from {
            PrintedStream::Read(from) => {
                let pipe = Pipe { begin: Vec::new(), from, sink, copy };
                return self.read(stream, pipe).map_err(|(error, _unread)| error);
            }
            PrintedStream::Silent(pipe) => pipe::Receiver::from_owned_fd(pipe)?,
        };
        let reader = self.clone();
        tokio::spawn(async move {
            let Some(begin) = first_piece(&pipe).await else { return };
            match pipe.into_blocking_fd() {
                Ok(pipe) => {
                    let from = Box::new(PipeReader::from(pipe));
                    reader.read_at_last(stream, Pipe { begin, from, sink, copy }).await;
                }
                Err(error) => log_error(&format!("the output cannot be read: {error}")),
            }
        });
        Ok(())
    }

    /// As soon as a thread can be started: until then the rank waits that prints more than a pipe holds.
    async fn read_at_last(&self, stream: LogStream, mut pipe: Pipe) {
        while let Err((error, unread)) = self.read(stream, pipe) {
            log_error(&format!("the output is not read yet: {error}"));
            sleep(THREAD_PAUSE).await;
            pipe = *unread;
        }
    }

    /// Has a thread read this pipe, or gives it back.
    fn read(&self, stream: LogStream, pipe: Pipe) -> Result<(), (io::Error, Box<Pipe>)> {
        let mut thread = lock(&self.0);
        let unread = match &*thread {
            Some(running) => match running.send(pipe) {
                Ok(()) => return Ok(()),
                // The thread has panicked.
                Err(unread) => unread.0,
            },
            None => pipe,
        };
        let (sender, pipes) = std_mpsc::channel();
        let name = match stream {
            LogStream::Stdout => "stdout",
            LogStream::Stderr => "stderr",
        };
        let started = thread::Builder::new().name(name.into()).spawn(move || read_each(stream, &pipes));
        if let Err(error) = started {
            return Err((error, Box::new(unread)));
        }
        let sent = sender.send(unread);
        *thread = Some(sender);
        sent.map_err(|unread| (io::ErrorKind::BrokenPipe.into(), Box::new(unread.0)))
    }
}

/// What is printed first; `None` if nothing ever is.
async fn first_piece(pipe: &pipe::Receiver) -> Option<Vec<u8>> {
    let mut piece = [0; FIRST_SIZE];
    loop {
        pipe.readable().await.ok()?;
        match pipe.try_read(&mut piece) {
            Ok(length) => return Some(piece[..length].to_vec()).filter(|piece| !piece.is_empty()),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => return None,
        }
    }
}

fn read_each(stream: LogStream, pipes: &std_mpsc::Receiver<Pipe>) {
    let mut piece = vec![0; BUFFER_SIZE];
    for pipe in pipes {
        read_to_end(stream, pipe, &mut piece);
    }
}

fn read_to_end(stream: LogStream, pipe: Pipe, piece: &mut [u8]) {
    let Pipe { begin, mut from, sink, mut copy } = pipe;
    let mut bars = BarParser::default();
    let mut store = |piece: &[u8]| {
        lock(&sink.log).append(stream, now(), piece);
        lock(&sink.oom_detector).append(stream, piece);
        if let Some(bar) = bars.feed(piece) {
            *lock(&sink.bar) = Some(bar);
        }
        copy = copy.take().and_then(|file| sink.copy(file, piece));
    };
    if !begin.is_empty() {
        store(&begin);
    }
    loop {
        match from.read(piece) {
            Ok(0) => return,
            Ok(length) => store(&piece[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

impl Sink {
    /// Writes to a file of the job, and returns it unless that fails.
    fn copy(&self, mut file: File, bytes: &[u8]) -> Option<File> {
        match file.write_all(bytes) {
            Ok(()) => Some(file),
            Err(error) => {
                let note =
                    format!("\n[cohabit: the file for the output cannot be written any more: {error}]\n");
                lock(&self.log).append(LogStream::Stderr, now(), note.as_bytes());
                None
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
