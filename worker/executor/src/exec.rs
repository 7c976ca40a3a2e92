//! Further processes beside the rank, in its environment: started when the daemon asks, ended when their
//! client goes away, and with the rank.
//!
//! Each is a child of this process and in the cgroup of the rank, so it counts as one of the rank's
//! processes. What it prints goes to a log of its own, no faster than its client reads: nothing of it is
//! dropped.

use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use cohabit_actor::blocking;
use cohabit_host::clock::now;
use cohabit_host::exec::{ExecDirectory, ExecsDirectory};
use cohabit_host::log::{LogLimits, LogWriter};
use cohabit_host::rank_directory::{Flush, RankDirectory};
use cohabit_host::records::{OutcomeRecord, StartRecord};
use cohabit_types::{Command, Entrypoint, ExecRequest, JobSpec, Outcome, OutputFiles, Time};
use cohabit_worker_core::RankExit;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::net::unix::pipe;
use tokio::sync::oneshot;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::error_log::log_error;
use crate::input::{InputFeed, feed_rank};
use crate::launch::{self, LaunchStreams, LaunchedRank};
use crate::output::{Output, PrintedText, RankStreams, Readers};
use crate::output_files::OpenOutput;
use crate::process_tree::ProcessTree;
use crate::terminal::{TERMINAL_SEGMENT, Terminal, serve_terminal};

/// How often it is looked whether the client is still there.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// How long a client may be silent: longer than a restart of head or worker takes.
const LEASE: Duration = Duration::from_secs(60);
/// The time from SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
/// How much may be printed that is not read.
const WINDOW: u64 = 8 << 20;
/// The pause of a reader that is too far ahead.
const WINDOW_PAUSE: Duration = Duration::from_millis(5);

/// What starts further processes of one rank.
pub(crate) struct ExecStarter<'a> {
    rank: RankDirectory,
    directory: ExecsDirectory,
    start: &'a StartRecord,
    bell: &'a ExecBell,
    /// Whether there were requests.
    was_asked: bool,
}

/// How an executor hears of requests, for whichever rank it holds.
pub(crate) struct ExecBell(pipe::Receiver);

/// A process that was started.
struct RunningExec {
    directory: ExecDirectory,
    started_at: Time,
    /// Its process group.
    group: Pid,
    /// How it ends; nothing, if the rank ends before.
    exit: oneshot::Receiver<Outcome>,
    output: Output,
    pace: Arc<OutputPace>,
}

/// How far the readers of one process are.
#[derive(Debug, Default)]
struct OutputPace {
    printed: AtomicU64,
    /// Whether a reader waits for the client.
    is_held: AtomicBool,
    /// Whether nobody reads what is printed.
    is_over: AtomicBool,
}

/// Reads no faster than the client.
struct PacedReader {
    from: PrintedText,
    directory: ExecDirectory,
    pace: Arc<OutputPace>,
}

impl ExecBell {
    /// The named pipe at this path, which moves on with the executor's other files.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub(crate) fn at(path: PathBuf) -> io::Result<ExecBell> {
        pipe::OpenOptions::new().read_write(true).open_receiver(path).map(ExecBell)
    }

    fn has_rung(&self) -> bool {
        self.0.try_read(&mut [0; 64]).is_ok()
    }
}

impl<'a> ExecStarter<'a> {
    pub(crate) fn new(rank: &RankDirectory, start: &'a StartRecord, bell: &'a ExecBell) -> ExecStarter<'a> {
        ExecStarter { rank: rank.clone(), directory: ExecsDirectory::of(rank), start, bell, was_asked: false }
    }

    /// Returns when there may be requests.
    pub(crate) async fn rung(&self) {
        while self.bell.0.readable().await.is_ok() {
            if self.bell.has_rung() {
                return;
            }
        }
        std::future::pending().await
    }

    /// Removes what requests have left. The rank is over: the daemon makes no others.
    pub(crate) async fn end(self) {
        if self.was_asked || self.bell.has_rung() {
            let directory = self.directory;
            if let Err(error) = blocking(move || directory.remove()).await {
                log_error(&error);
            }
        }
    }

    /// The requests.
    pub(crate) async fn requests(&mut self) -> Vec<(ExecDirectory, ExecRequest)> {
        self.was_asked = true;
        let directory = self.directory.clone();
        let taken = blocking(move || {
            let mut requests = Vec::new();
            for each in directory.all()? {
                requests.extend(each.take_request()?.map(|request| (each, request)));
            }
            io::Result::Ok(requests)
        });
        taken.await.unwrap_or_else(|error| {
            log_error(&format!("requests for further processes cannot be read: {error}"));
            Vec::new()
        })
    }

    /// Starts a process, whose end the tree tells, and lets it run.
    pub(crate) fn start(&self, directory: ExecDirectory, request: ExecRequest, tree: &mut ProcessTree) {
        match self.launch(&directory, request, tree) {
            Ok(running) => _ = tokio::spawn(running),
            Err(ended) => {
                let ended = OutcomeRecord::without_start(ended, now());
                if let Err(error) = directory.as_rank().write_ended(&ended, Flush::Later) {
                    log_error(&error);
                }
                tokio::spawn(remove_unwanted(directory));
            }
        }
    }

    /// # Errors
    /// How it ended before it began.
    fn launch(
        &self,
        directory: &ExecDirectory,
        request: ExecRequest,
        tree: &mut ProcessTree,
    ) -> Result<impl Future<Output = ()> + use<>, Outcome> {
        let failed = |error: io::Error| {
            Outcome::NotStarted(cohabit_types::StartFailure::Other(format!("it has no streams: {error}")))
        };
        let files = directory.as_rank();
        let terminal = request.terminal;
        let (feed, streams) = match terminal {
            Some(size) => {
                files.terminal().create().map_err(failed)?;
                (None, LaunchStreams::Terminal(size))
            }
            None => {
                let (feed, input) = InputFeed::new(&files).map_err(failed)?;
                (Some(feed), LaunchStreams::Pipes(Some(input)))
            }
        };
        let launched =
            launch::launch(&self.rank, &self.record_of(request), streams).map_err(Outcome::NotStarted)?;
        let LaunchedRank { mut child, terminal, .. } = launched;
        let group = Pid::from_raw(child.id().cast_signed());
        let exit = tree.follow(group);
        let pace = Arc::new(OutputPace::default());
        let streams = RankStreams::of(&mut child, terminal.as_ref()).map_err(failed)?;
        let paced = |from| -> PrintedText {
            Box::new(PacedReader { from, directory: directory.clone(), pace: Arc::clone(&pace) })
        };
        let log =
            LogWriter::new(files.log(), LogLimits { segment: TERMINAL_SEGMENT, ..LogLimits::default() });
        // Threads of its own: those of the rank read that.
        let output =
            Output::store(&mut Readers::default(), streams.read_through(paced), log, OpenOutput::default());
        let output = output.map_err(failed)?;
        let running =
            RunningExec { directory: directory.clone(), started_at: now(), group, exit, output, pace };
        Ok(running.run(feed, terminal))
    }

    /// The start of the rank with another command.
    fn record_of(&self, request: ExecRequest) -> StartRecord {
        let mut start = self.start.clone();
        start.environment.extend(request.environment);
        let spec = JobSpec::clone(&start.rank.spec);
        let entrypoint = Entrypoint::Command(Command { argv: request.argv, script: None });
        start.rank.spec = JobSpec { entrypoint, output: OutputFiles::default(), ..spec }.into();
        start
    }
}

impl RunningExec {
    async fn run(mut self, feed: Option<InputFeed>, terminal: Option<Terminal>) {
        let feeding = feed.map(|feed| tokio::spawn(feed_rank(feed)));
        let typing =
            terminal.map(|terminal| tokio::spawn(serve_terminal(terminal, self.directory.as_rank())));
        let outcome = self.exit().await;
        feeding.into_iter().chain(typing).for_each(|task| task.abort());
        self.drain().await;
        let ending = RankExit { outcome, stopped: None, at: now() };
        let ended = OutcomeRecord { rank: None, ending, started_at: Some(self.started_at), progress: None };
        let files = self.directory.as_rank();
        if let Err(error) = blocking(move || files.write_ended(&ended, Flush::Later)).await {
            log_error(&error);
        }
        remove_unwanted(self.directory).await;
    }

    /// Waits for its end, and ends it when its client is gone.
    async fn exit(&mut self) -> Outcome {
        let mut check = interval(CHECK_INTERVAL);
        check.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut kill_at: Option<Instant> = None;
        loop {
            tokio::select! {
                biased;
                // The rank is over, and with it all its processes.
                exit = &mut self.exit => {
                    return exit.unwrap_or(Outcome::Signalled(cohabit_types::Signal(Signal::SIGKILL as i32)));
                }
                _ = check.tick() => {}
            }
            match kill_at {
                Some(at) if Instant::now() >= at => self.signal(Signal::SIGKILL),
                Some(_) => {}
                None if is_unwanted(&self.directory).await => {
                    kill_at = Some(Instant::now() + GRACE);
                    self.pace.is_over.store(true, Ordering::Relaxed);
                    [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGCONT]
                        .into_iter()
                        .for_each(|it| self.signal(it));
                }
                None => {}
            }
        }
    }

    /// Its leader is not reaped before its end is known here, so the group is its own.
    fn signal(&self, signal: Signal) {
        // It may have ended at this moment.
        let _ = killpg(self.group, signal);
    }

    /// Waits until what it printed is read. A process that it left behind may hold the pipes open: that is
    /// not waited for once it prints nothing.
    async fn drain(&mut self) {
        let mut seen = None;
        while !self.output.is_drained(CHECK_INTERVAL).await {
            let printed = self.pace.printed.load(Ordering::Relaxed);
            let is_silent = !self.pace.is_held.load(Ordering::Relaxed) && seen == Some(printed);
            if is_silent || is_unwanted(&self.directory).await {
                break;
            }
            seen = Some(printed);
        }
        self.pace.is_over.store(true, Ordering::Relaxed);
    }
}

/// Removes the directory once nobody wants it.
async fn remove_unwanted(directory: ExecDirectory) {
    let mut check = interval(CHECK_INTERVAL);
    while !is_unwanted(&directory).await {
        check.tick().await;
    }
    if let Err(error) = blocking(move || directory.remove()).await {
        log_error(&error);
    }
}

/// Whether the client has said so, was silent for too long, or has the outcome, with which the daemon removes
/// it.
async fn is_unwanted(directory: &ExecDirectory) -> bool {
    let directory = directory.clone();
    blocking(move || {
        let is_silent = || directory.wanted().is_some_and(|(_, silence)| silence > LEASE);
        directory.is_ended() || !directory.as_rank().path().exists() || is_silent()
    })
    .await
}

impl Read for PacedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let pace = &self.pace;
        while !pace.is_over.load(Ordering::Relaxed) {
            let read = self.directory.wanted().map_or(0, |(read, _)| read);
            let is_held = pace.printed.load(Ordering::Relaxed) > read + WINDOW;
            pace.is_held.store(is_held, Ordering::Relaxed);
            if !is_held {
                let length = self.from.read(buffer)?;
                pace.printed.fetch_add(length as u64, Ordering::Relaxed);
                return Ok(length);
            }
            thread::sleep(WINDOW_PAUSE);
        }
        Ok(0)
    }
}
