//! The executor: a process that runs one rank at a time and outlives the daemon that started it.
//!
//! It starts the rank, stores its output, follows its progress, delivers signals, and writes down how the
//! rank ended once no process of it is left. It knows nothing about the head or other jobs: what to do is in
//! the rank's directory, and whoever connects to the socket there commands it. If no daemon that reaches the
//! head is connected for too long, it stops the rank by itself.
//!
//! It is a child subreaper: orphaned processes of the rank become its children, so none escapes. So it knows
//! for certain when nothing is left of the rank, and can run the next one that its daemon assigns.
//!
//! ```text
//! lib             the life of the process, and of one rank    (start here: `executor`)
//! launch          starts the rank's first process
//! supervisor      the event loop while the rank runs          process_tree     the rank's processes
//! socket          the daemon's connection                     watchdog         if nobody else can end it
//! output          stores what the rank prints                 client_removal   MPS clients, before SIGKILL
//! input           feeds what clients send to the rank
//! exec            further processes beside the rank
//! copy_reader     a process of its own that reads files of a job for a copy
//! terminal        a terminal for the rank, and what clients type there
//! output_files    the files of the job that it also goes to
//! inherited_state what the executor drops at its start        raw              the unsafe steps
//! ```

mod client_removal;
mod copy_reader;
mod error_log;
mod exec;
mod inherited_state;
mod input;
mod launch;
mod open_files;
mod output;
mod output_files;
mod process_tree;
mod raw;
mod socket;
mod supervisor;
mod terminal;
mod watchdog;

use std::env;
use std::ffi::CString;
use std::fs;
use std::future::pending;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, ExitCode};
use std::sync::Arc;
use std::time::Duration;

use cohabit_actor::{blocking, give_back};
use cohabit_host::assignment::{Assignment, Assignments, OPEN_FILES};
use cohabit_host::clock::{self, now};
use cohabit_host::files::FileError;
use cohabit_host::log::{LogLimits, LogWriter};
use cohabit_host::process::ProcessIdentity;
use cohabit_host::progress::{ProgressFile, ProgressTracker, SeriesWriter};
use cohabit_host::rank_directory::{Flush, RankDirectory};
use cohabit_host::records::{ExecutorRecord, OutcomeRecord, StartRecord};
use cohabit_types::{JobInput, LogStream, Outcome};
use cohabit_worker_core::{OrphanTimer, RankExit, StopSequence};
use nix::unistd::Pid;
use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use client_removal::RemovalState;
pub use copy_reader::copy_reader;
use error_log::log_error;
use exec::{ExecBell, ExecStarter};
use inherited_state::drop_inherited_state;
use input::{InputFeed, feed_rank};
use launch::{LaunchStreams, LaunchedRank};
use open_files::lower_open_file_limit;
use output::{Output, RankStreams, Readers, RemainingOutput};
use output_files::OpenOutput;
use process_tree::ProcessTree;
use socket::{DaemonSockets, RankStatus, serve};
use supervisor::{RankSupervisor, Termination};
use terminal::{TERMINAL_SEGMENT, Terminal, serve_terminal};
use watchdog::{Watchdog, under_watchdog};

/// How many times, a second apart, writing the outcome is tried: a full disk may get free space again.
const WRITE_ATTEMPTS: u32 = 600;

/// An executor that has waited so long for a rank gives memory back.
const IDLE_DELAY: Duration = Duration::from_secs(10);

/// Commands that may be queued.
const COMMANDS: usize = 64;

/// Why an executor gave up.
#[derive(Debug, thiserror::Error)]
enum ExecutorError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("the rank's directory has no start.json")]
    NothingToStart,
    #[error("the first rank was assigned without a listening socket")]
    NoSocket,
    #[error("the daemon abandoned the rank before it could start, or the head cannot be reached any more")]
    GivenUp,
    #[error("a system call failed: {0}")]
    System(#[from] io::Error),
}

/// Runs one rank after the other, as the worker daemon assigns them, until it assigns no more.
///
/// Must be the first call in a process of its own, whose standard input is the assignment channel. The exit
/// code says whether the outcome of the last rank was written, not how it ended.
#[must_use]
pub fn executor() -> ExitCode {
    if let Some(limit) = env::var(OPEN_FILES).ok().and_then(|limit| limit.parse().ok()) {
        lower_open_file_limit(limit);
    }
    under_watchdog(run)
}

fn run(watchdog: Watchdog) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let result = runtime.map_err(ExecutorError::from).and_then(|runtime| {
        let result = runtime.block_on(run_ranks(watchdog));
        runtime.shutdown_background();
        result
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log_error(&error);
            ExitCode::FAILURE
        }
    }
}

async fn run_ranks(mut watchdog: Watchdog) -> Result<(), ExecutorError> {
    take_name();
    drop_inherited_state()?;
    detach()?;
    let identity = ExecutorRecord { process: ProcessIdentity::own()?, watchdog: watchdog.process().cloned() };
    let assignments = Assignments::new(io::stdin().as_fd().try_clone_to_owned()?)?;
    let mut deaths = signal(SignalKind::child())?;
    let mut readers = Readers::default();
    let (mut own_listener, mut own_bell) = (None, None);
    while let Some(Assignment { directory, connection, listener, input }) =
        next_assignment(&assignments, own_listener.as_deref()).await?
    {
        let directory = RankDirectory::new(directory);
        directory.redirect_stderr()?;
        if let Some(listener) = listener {
            directory.write_identity(&identity)?;
            listener.set_nonblocking(true)?;
            own_listener = Some(Arc::new(UnixListener::from_std(listener)?));
            own_bell = Some(ExecBell::at(directory.create_bell()?)?);
        }
        let listener = own_listener.clone().ok_or(ExecutorError::NoSocket)?;
        let bell = own_bell.as_ref().ok_or(ExecutorError::NoSocket)?;
        connection.set_nonblocking(true)?;
        let sockets = DaemonSockets { listener, connection: UnixStream::from_std(connection)? };
        let lasting = ExecutorResources {
            deaths: &mut deaths,
            readers: &mut readers,
            assignments: &assignments,
            watchdog: &mut watchdog,
            bell,
        };
        run_rank(&directory, sockets, input, lasting).await?;
    }
    Ok(())
}

/// The kernel names a process after the file that it was told to execute, perhaps `/proc/self/exe`.
fn take_name() {
    let name = env::args_os().next().and_then(|path| {
        let name = Path::new(&path).file_name()?.as_bytes().to_vec();
        CString::new(name).ok()
    });
    if let Some(name) = name {
        // Only a name for people: it cannot fail with a valid pointer.
        let _ = nix::sys::prctl::set_name(&name);
    }
}

/// Waits for the next rank.
async fn next_assignment(
    assignments: &Assignments,
    listener: Option<&UnixListener>,
) -> Result<Option<Assignment>, ExecutorError> {
    let mut is_small = false;
    loop {
        tokio::select! {
            assignment = assignments.next() => return Ok(assignment?),
            // A daemon that connects now is looking for the last rank, and finds its outcome in the
            // directory.
            Ok(_) = accept(listener) => {}
            () = sleep(IDLE_DELAY), if !is_small => {
                give_back();
                is_small = true;
            }
        }
    }
}

async fn accept(listener: Option<&UnixListener>) -> io::Result<UnixStream> {
    match listener {
        Some(listener) => listener.accept().await.map(|(stream, _)| stream),
        None => pending().await,
    }
}

async fn run_rank(
    directory: &RankDirectory,
    sockets: DaemonSockets,
    input: Option<OwnedFd>,
    lasting: ExecutorResources<'_>,
) -> Result<(), ExecutorError> {
    let start = directory.start()?.ok_or(ExecutorError::NothingToStart)?;
    if directory.is_over() {
        return Err(ExecutorError::GivenUp);
    }
    start.booted_at.into_iter().for_each(clock::agree_on);
    let leased_at = start.leased_at.unwrap_or_else(now);
    let mut orphan_timer = OrphanTimer::new(leased_at, start.orphan_grace, start.lease_term);
    if orphan_timer.expired_at(now()).is_some() {
        return Err(ExecutorError::GivenUp);
    }
    let progress_file = ProgressFile::create(directory.progress(), start.account.as_ref())?;
    let mut log = LogWriter::new(directory.log(), log_limits(&start));
    let execs = ExecStarter::new(directory, &start, lasting.bell);
    let is_sent = start.rank.spec.input == JobInput::Sent && start.rank.rank.rank == 0;
    let (feed, streams) = match launch::terminal_size(&start) {
        Some(size) => {
            directory.terminal().create()?;
            (None, LaunchStreams::Terminal(size))
        }
        None if is_sent => {
            let (feed, input) = InputFeed::new(directory)?;
            (Some(feed), LaunchStreams::Pipes(Some(input)))
        }
        None => (None, LaunchStreams::Pipes(input)),
    };
    match launch::launch(directory, &start, streams) {
        Ok(LaunchedRank { child, note, files, terminal }) => {
            let of_daemon = start.rank.note.as_ref().map(|note| format!("[cohabit: {note}]\n"));
            for note in of_daemon.into_iter().chain(note) {
                log.append(LogStream::Stderr, now(), note.as_bytes());
            }
            let sources = RankSources { feed, terminal };
            let resources =
                RankResources { sockets, progress_file, log, files, sources, execs, orphan_timer, lasting };
            supervise(directory, &start, child, resources).await
        }
        Err(failure) => {
            let ended = OutcomeRecord::without_start(Outcome::NotStarted(failure), now());
            write_outcome(directory, ended, Flush::Later).await?;
            let typed = directory.terminal();
            let _ = blocking(move || typed.remove()).await;
            execs.end().await;
            Ok(())
        }
    }
}

/// A reader looks for its place from the begin of a segment, after each key of a terminal: so its segments
/// are short.
fn log_limits(start: &StartRecord) -> LogLimits {
    match launch::terminal_size(start) {
        Some(_) => LogLimits { segment: start.log.segment.min(TERMINAL_SEGMENT), ..start.log },
        None => start.log,
    }
}

/// Leaves the daemon's session, so that no terminal ends this process; survives signals that are meant for
/// the daemon's process group; and becomes the subreaper of the rank's processes.
fn detach() -> Result<(), ExecutorError> {
    // Fails only if this process leads a session already, which is just as good.
    let _ = nix::unistd::setsid();
    for kind in [SignalKind::hangup(), SignalKind::interrupt(), SignalKind::terminate(), SignalKind::quit()] {
        // A handled signal no longer ends this process and, unlike an ignored one, is not inherited.
        drop(signal(kind)?);
    }
    nix::sys::prctl::set_child_subreaper(true).map_err(io::Error::from)?;
    Ok(())
}

/// What is prepared before the rank is started.
struct RankResources<'a> {
    sockets: DaemonSockets,
    progress_file: ProgressFile,
    log: LogWriter,
    files: OpenOutput,
    sources: RankSources,
    execs: ExecStarter<'a>,
    orphan_timer: OrphanTimer,
    lasting: ExecutorResources<'a>,
}

/// What the rank reads.
struct RankSources {
    feed: Option<InputFeed>,
    terminal: Option<Terminal>,
}

/// What an executor keeps for all its ranks.
struct ExecutorResources<'a> {
    deaths: &'a mut Signal,
    readers: &'a mut Readers,
    assignments: &'a Assignments,
    watchdog: &'a mut Watchdog,
    bell: &'a ExecBell,
}

async fn supervise(
    directory: &RankDirectory,
    start: &StartRecord,
    mut child: Child,
    resources: RankResources<'_>,
) -> Result<(), ExecutorError> {
    let ExecutorResources { deaths, readers, assignments, watchdog, bell: _ } = resources.lasting;
    let (started_at, process) = (now(), child.id().cast_signed());
    let RankSources { feed, terminal } = resources.sources;
    let streams = RankStreams::of(&mut child, terminal.as_ref())?;
    let has_terminal = terminal.is_some();
    let (status, status_changes) =
        watch::channel(RankStatus { started_at, process, stopping: None, progress: None, ended: None });
    let (sender, messages) = mpsc::channel(COMMANDS);
    let feeding = feed.map(|feed| tokio::spawn(feed_rank(feed)));
    let typing = terminal.map(|terminal| tokio::spawn(serve_terminal(terminal, directory.clone())));
    let serving = tokio::spawn(serve(resources.sockets, status_changes, sender));
    let supervisor = RankSupervisor {
        process_tree: ProcessTree::new(Pid::from_raw(process)),
        has_terminal,
        execs: resources.execs,
        output: Output::store(readers, streams, resources.log, resources.files)?,
        progress_file: resources.progress_file,
        tracker: ProgressTracker::default(),
        series: SeriesWriter::new(directory.series()),
        status: status.clone(),
        orphan_timer: resources.orphan_timer,
        watchdog,
        grace: start.rank.spec.stop.grace,
        stop: StopSequence::new(
            start.rank.spec.stop,
            start.rank.spec.time_limit.map(|limit| started_at + limit),
            None,
        ),
        termination: Termination::default(),
        removal: RemovalState::new(start.removal.clone()),
    };
    let result = supervisor.run(deaths, messages).await;
    let outcome = match &start.cgroup {
        Some(cgroup) => {
            let outcome = cgroup.explain(result.outcome);
            cgroup.clear().await;
            outcome
        }
        None => result.outcome,
    };
    let ending = RankExit { outcome, stopped: result.stopped, at: result.at };
    let ended = OutcomeRecord { rank: None, ending, started_at: Some(started_at), progress: result.progress };
    let ended = write_outcome(directory, ended, result.flush).await?;
    remove_read(directory, feeding, typing).await;
    result.execs.end().await;
    if result.output == RemainingOutput::Unread {
        assignments.refuse()?;
    }
    // Connections end only now, because their end tells the daemon that this executor is free.
    status.send_modify(|status| status.ended = Some(ended));
    let _ = serving.await;
    Ok(())
}

/// Removes what the rank has reported and what it was sent. Nobody reads that any more, it may be large,
/// and the directory stays with the output. An empty file for progress stays for another rank.
async fn remove_read(
    directory: &RankDirectory,
    feeding: Option<JoinHandle<()>>,
    typing: Option<JoinHandle<()>>,
) {
    let mut read = Vec::from_iter(directory.has_progress().then(|| directory.progress()));
    if let Some(feeding) = feeding {
        feeding.abort();
        read.extend([directory.input(), directory.input_end()]);
    }
    let typed = typing.map(|typing| {
        typing.abort();
        directory.terminal()
    });
    if !read.is_empty() || typed.is_some() {
        blocking(move || {
            read.into_iter().for_each(|file| _ = fs::remove_file(file));
            typed.into_iter().for_each(|typed| _ = typed.remove());
        })
        .await;
    }
}

/// Writes the outcome, again and again if that fails, and returns it. Only a flush waits for the disk, and so
/// leaves this thread.
async fn write_outcome(
    directory: &RankDirectory,
    ended: OutcomeRecord,
    flush: Flush,
) -> Result<OutcomeRecord, ExecutorError> {
    let ended = Arc::new(ended);
    let mut attempts = 1;
    loop {
        let written = match flush {
            Flush::Later => directory.write_ended(&ended, flush),
            Flush::Now => {
                let (directory, ended) = (directory.clone(), Arc::clone(&ended));
                blocking(move || directory.write_ended(&ended, flush)).await
            }
        };
        match written {
            Ok(()) => return Ok(Arc::unwrap_or_clone(ended)),
            Err(error) if attempts == WRITE_ATTEMPTS => return Err(error.into()),
            Err(_) => attempts += 1,
        }
        sleep(Duration::from_secs(1)).await;
    }
}
