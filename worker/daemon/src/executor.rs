//! The executor: a process that holds one rank, and outlives the daemon that started it.
//!
//! It starts the rank, keeps what it prints, follows its progress, passes signals on, and writes down how it
//! ended once nothing of it is left. It knows no head and no job but its own: what to do is in the rank's
//! folder, and whoever connects to the socket there may command it. When nobody who knows the head does so
//! for too long, it stops the rank by itself.
//!
//! It is a sub-reaper: whatever the rank leaves behind becomes its child, so that nothing escapes. So it
//! knows for sure when nothing is left, and may then hold another rank, if its daemon has one for it.

pub(crate) mod gpu_memory;
mod launch;
mod lease;
mod output;
mod process_tree;
mod removal;
mod socket;
mod supervisor;

use std::env;
use std::fmt;
use std::future::pending;
use std::io;
use std::os::fd::AsFd;
use std::process::{Child, ExitCode};
use std::sync::Arc;
use std::time::Duration;

use cohabit_net::lower_open_file_limit;
use cohabit_types::{LogStream, Outcome};
use cohabit_worker_core::RankExit;
use nix::unistd::Pid;
use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};

use crate::assignment::{Assignment, Assignments};
use crate::clock::{self, now};
use crate::files::FileError;
use crate::isolation::drop_inherited_state;
use crate::log::LogWriter;
use crate::process::ProcessIdentity;
use crate::progress::{ProgressFile, ProgressTracker};
use crate::rank_folder::{Flush, OutcomeRecord, RankDirectory, StartRecord};
use launch::LaunchedRank;
use lease::OrphanTimer;
use output::{Output, Readers, RemainingOutput};
use process_tree::ProcessTree;
use removal::Removal;
use socket::{DaemonSockets, RankStatus, serve};
use supervisor::{RankSupervisor, Termination};

/// How often, a second apart, it is tried to write down how the rank ended: a full disk may have room again.
const WRITE_ATTEMPTS: u32 = 600;

/// Commands that may wait to be obeyed.
const COMMANDS: usize = 64;

/// The variable that says how many files the rank may have open: the daemon itself may have more.
pub(crate) const OPEN_FILES: &str = "COHABIT_OPEN_FILES";

/// Why an executor gave up.
#[derive(Debug, thiserror::Error)]
enum ExecutorError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("there is no start.json in the folder")]
    NothingToStart,
    #[error("its first rank came without a socket to listen at")]
    NoSocket,
    #[error("the rank was given up before it could start")]
    GivenUp,
    #[error("the system refuses what an executor needs: {0}")]
    System(#[from] io::Error),
}

/// Holds one rank after the other, as the worker daemon gives them, until it gives no more.
///
/// To be called first thing in a process of its own, whose standard input is the line to the daemon. The
/// result says whether the end of the last rank was written down, not how it ended.
#[must_use]
pub fn executor() -> ExitCode {
    if let Some(limit) = env::var(OPEN_FILES).ok().and_then(|limit| limit.parse().ok()) {
        lower_open_file_limit(limit);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let worked = runtime.map_err(ExecutorError::from).and_then(|runtime| {
        let worked = runtime.block_on(work());
        runtime.shutdown_background();
        worked
    });
    match worked {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log_error(&error);
            ExitCode::FAILURE
        }
    }
}

async fn work() -> Result<(), ExecutorError> {
    drop_inherited_state()?;
    detach()?;
    let identity = ProcessIdentity::own()?;
    let assignments = Assignments::over(io::stdin().as_fd().try_clone_to_owned()?)?;
    let mut deaths = signal(SignalKind::child())?;
    let mut readers = Readers::default();
    let mut own_listener = None;
    while let Some(Assignment { folder, connection, listener }) =
        next(&assignments, own_listener.as_deref()).await?
    {
        let folder = RankDirectory::new(folder);
        folder.redirect_stderr()?;
        if let Some(listener) = listener {
            folder.write_identity(&identity)?;
            listener.set_nonblocking(true)?;
            own_listener = Some(Arc::new(UnixListener::from_std(listener)?));
        }
        let listener = own_listener.clone().ok_or(ExecutorError::NoSocket)?;
        connection.set_nonblocking(true)?;
        let line = DaemonSockets { listener, connection: UnixStream::from_std(connection)? };
        let lasting =
            ExecutorResources { deaths: &mut deaths, readers: &mut readers, assignments: &assignments };
        run(&folder, line, lasting).await?;
    }
    Ok(())
}

/// The next rank.
async fn next(
    assignments: &Assignments,
    listener: Option<&UnixListener>,
) -> Result<Option<Assignment>, ExecutorError> {
    loop {
        tokio::select! {
            assignment = assignments.next() => return Ok(assignment?),
            // Whoever wants to hear of the last one is late, and finds its outcome.
            Ok(_) = connected(listener) => {}
        }
    }
}

async fn connected(listener: Option<&UnixListener>) -> io::Result<UnixStream> {
    match listener {
        Some(listener) => listener.accept().await.map(|(stream, _)| stream),
        None => pending().await,
    }
}

async fn run(
    folder: &RankDirectory,
    line: DaemonSockets,
    lasting: ExecutorResources<'_>,
) -> Result<(), ExecutorError> {
    let start = folder.start()?.ok_or(ExecutorError::NothingToStart)?;
    if folder.is_over() {
        return Err(ExecutorError::GivenUp);
    }
    start.booted_at.into_iter().for_each(clock::agree_on);
    let progress_file = ProgressFile::create(folder.progress())?;
    if let Some(account) = &start.account {
        account.own(&folder.progress())?;
    }
    let mut log = LogWriter::new(folder.log(), start.log);
    match launch::launch(folder, &start) {
        Ok(LaunchedRank { child, note }) => {
            if let Some(note) = note {
                log.append(LogStream::Stderr, now(), note.as_bytes());
            }
            let kept = RankResources { line, progress_file, log, lasting };
            hold(folder, &start, child, kept).await
        }
        Err(failure) => {
            let ended = OutcomeRecord::without_start(Outcome::NotStarted(failure), now());
            write_outcome(folder, &ended, Flush::Later).await
        }
    }
}

/// Leaves the session of the daemon, so that no terminal can end us; lives on through signals meant for its
/// group; and adopts what the rank leaves behind.
fn detach() -> Result<(), ExecutorError> {
    // It fails only where we lead a session already, which is as good.
    let _ = nix::unistd::setsid();
    for kind in [SignalKind::hangup(), SignalKind::interrupt(), SignalKind::terminate(), SignalKind::quit()] {
        // Once listened to, a signal no longer ends the process; and unlike an ignored one it is not
        // inherited.
        drop(signal(kind)?);
    }
    nix::sys::prctl::set_child_subreaper(true).map_err(io::Error::from)?;
    Ok(())
}

/// What is made ready before the rank is started.
struct RankResources<'a> {
    line: DaemonSockets,
    progress_file: ProgressFile,
    log: LogWriter,
    lasting: ExecutorResources<'a>,
}

/// What an executor has for all its ranks.
struct ExecutorResources<'a> {
    deaths: &'a mut Signal,
    readers: &'a mut Readers,
    assignments: &'a Assignments,
}

async fn hold(
    folder: &RankDirectory,
    start: &StartRecord,
    mut child: Child,
    kept: RankResources<'_>,
) -> Result<(), ExecutorError> {
    let ExecutorResources { deaths, readers, assignments } = kept.lasting;
    let (started_at, process) = (now(), child.id().cast_signed());
    let (stdout, stderr) = child.stdout.take().zip(child.stderr.take()).expect("both were asked to be pipes");
    let (status, told) = watch::channel(RankStatus { started_at, process, stopping: None, progress: None });
    let (hearer, heard) = mpsc::channel(COMMANDS);
    let serving = tokio::spawn(serve(kept.line, told, hearer));
    let term = start.lease_term.map(Duration::from);
    let supervisor = RankSupervisor {
        process_tree: ProcessTree::of(Pid::from_raw(process)),
        output: Output::keep(readers, stdout, stderr, kept.log)?,
        progress_file: kept.progress_file,
        tracker: ProgressTracker::default(),
        status: status.clone(),
        orphan_timer: OrphanTimer::new(Instant::now(), start.orphan_grace.into(), term),
        grace: start.rank.spec.stop.grace,
        force: Termination::default(),
        removal: Removal::of(start.removal.clone()),
    };
    let over = supervisor.hold(deaths, heard).await;
    let outcome = match &start.cgroup {
        Some(cgroup) => {
            let outcome = cgroup.explained(over.outcome);
            cgroup.clear().await;
            outcome
        }
        None => over.outcome,
    };
    let ending = RankExit { outcome, stopped: over.stopped, at: over.at };
    let ended = OutcomeRecord { ending, started_at: Some(started_at), progress: over.progress };
    write_outcome(folder, &ended, over.flush).await?;
    if over.output == RemainingOutput::Unread {
        assignments.refuse()?;
    }
    // Connections end here, and not before there is an outcome to look at.
    serving.abort();
    let _ = serving.await;
    Ok(())
}

async fn write_outcome(
    folder: &RankDirectory,
    ended: &OutcomeRecord,
    flush: Flush,
) -> Result<(), ExecutorError> {
    let mut attempts = 1;
    while let Err(error) = folder.write_ended(ended, flush) {
        if attempts == WRITE_ATTEMPTS {
            return Err(error.into());
        }
        attempts += 1;
        sleep(Duration::from_secs(1)).await;
    }
    Ok(())
}

/// The only words of an executor: what keeps it from its work.
#[expect(clippy::print_stderr, reason = "the daemon makes a file of it, for whoever looks into a lost rank")]
fn log_error(trouble: &impl fmt::Display) {
    eprintln!("executor {}: {trouble}", std::process::id());
}
