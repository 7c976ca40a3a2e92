//! Determines how a rank ended whose executor closed the connection, and kills whatever is left of it.
//!
//! An executor writes the outcome before it exits. One that exits without an outcome was killed, or the host
//! was rebooted: its processes are found by their environment and killed, and an outcome is written in its
//! place.

use std::sync::Arc;
use std::time::Duration;

use cohabit_actor::blocking;
use cohabit_gpu::mps::ClientRemoval;
use cohabit_host::client_removal::remove;
use cohabit_host::process::{LiveProcess, ProcessIdentity, descendants_of, send, with_environment};
use cohabit_host::rank_directory::{Flush, RankDirectory};
use cohabit_host::records::{ExecutorRecord, OutcomeRecord};
use cohabit_host::{clock, files};
use cohabit_types::Outcome;
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use tokio::time::{Instant, sleep};

/// How long an executor that closed the connection may take to exit.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// What the directory of a rank says about its end.
enum Evidence {
    Outcome(OutcomeRecord),
    /// There is no outcome, but the executor lives and may still write one.
    ExecutorLives,
    /// There will be no outcome: why.
    Lost(String),
}

/// How the rank ended. Returns when no process of it is left.
pub(crate) async fn determine_outcome(directory: &RankDirectory) -> OutcomeRecord {
    let deadline = Instant::now() + EXIT_TIMEOUT;
    loop {
        let (examined, is_over) = (directory.clone(), Instant::now() >= deadline);
        match blocking(move || examine(&examined, is_over)).await {
            Evidence::Outcome(ended) => return ended,
            Evidence::ExecutorLives => sleep(POLL_INTERVAL).await,
            Evidence::Lost(why) => return write_off(directory, why).await,
        }
    }
}

/// Whether the executor lives is read before the outcome: one that has exited has written what it ever will.
fn examine(directory: &RankDirectory, is_over: bool) -> Evidence {
    if let Ok(Some(ended)) = directory.ended() {
        return Evidence::Outcome(ended);
    }
    let executor = directory.identity().ok().flatten();
    if !is_over && executor.is_some_and(|executor| executor.process.is_alive()) {
        return Evidence::ExecutorLives;
    }
    match directory.ended() {
        Ok(Some(ended)) => Evidence::Outcome(ended),
        Ok(None) => Evidence::Lost("its executor was killed, or the host was rebooted".to_owned()),
        Err(error) => Evidence::Lost(error.to_string()),
    }
}

/// How a rank ended that was killed with its executor: as the executor wrote, or else like this, which is
/// written in its place.
pub(crate) async fn outcome_of_killed(directory: &RankDirectory, ended: OutcomeRecord) -> OutcomeRecord {
    let directory = directory.clone();
    blocking(move || {
        if let Ok(Some(written)) = directory.ended() {
            return written;
        }
        if let Err(error) = directory.write_ended(&ended, Flush::Now) {
            tracing::warn!(%error, "the outcome of a killed rank could not be stored");
        }
        ended
    })
    .await
}

/// Kills what is left of a lost rank and writes its outcome.
async fn write_off(directory: &RankDirectory, why: String) -> OutcomeRecord {
    kill_remaining(directory).await;
    let directory = directory.clone();
    blocking(move || {
        let messages = files::read(&directory.executor_log()).unwrap_or_default();
        let detail = match String::from_utf8_lossy(&messages).lines().last() {
            Some(message) => format!("{why} ({message})"),
            None => why,
        };
        tracing::warn!(directory = %directory.path().display(), detail, "a rank was lost");
        let ended = OutcomeRecord::without_start(Outcome::Lost(detail), clock::now());
        if let Err(error) = directory.write_ended(&ended, Flush::Now) {
            tracing::warn!(%error, "the outcome of a lost rank could not be stored");
        }
        ended
    })
    .await
}

/// Kills every process of the rank, and its executor, if it hangs, until none is left.
pub(crate) async fn kill_remaining(directory: &RankDirectory) {
    kill(directory, None).await;
}

/// The same where the root of these processes is known, although the executor may not have written it down.
/// MPS clients are removed from their server first.
pub(crate) async fn kill(directory: &RankDirectory, root: Option<ProcessIdentity>) {
    let reader = directory.clone();
    let read = move || {
        let executor = reader.identity().ok().flatten();
        let is_past = executor.as_ref().is_some_and(|executor| !executor.process.is_of_this_boot());
        (executor, is_past, reader.start().ok().flatten())
    };
    let (executor, is_of_earlier_boot, start) = blocking(read).await;
    if is_of_earlier_boot {
        return;
    }
    let (mut removal, cgroup) = start.map_or((None, None), |start| (start.removal, start.cgroup));
    let remains = Arc::new(Remains { directory: directory.clone(), executor, root });
    loop {
        let searched = Arc::clone(&remains);
        let left = blocking(move || searched.find()).await;
        if left.is_empty() {
            if let Some(cgroup) = cgroup {
                cgroup.clear().await;
            }
            return;
        }
        if let Some(removal) = removal.take() {
            remove_mps_clients(directory, removal, &left).await;
        }
        left.iter().for_each(|process| send(process.pid, Signal::SIGKILL));
        sleep(POLL_INTERVAL).await;
    }
}

/// What may be left of a rank.
struct Remains {
    directory: RankDirectory,
    executor: Option<ExecutorRecord>,
    /// The process of which all others are descendants, where the executor has not written it down.
    root: Option<ProcessIdentity>,
}

impl Remains {
    /// The processes that are left: the executor and all below its watchdog, and after them the watchdog.
    /// What a killed executor left is below its watchdog; what the executor of an earlier release left is
    /// known by its environment.
    fn find(&self) -> Vec<LiveProcess> {
        let mut left = with_environment("COHABIT_PROGRESS", self.directory.progress().as_os_str());
        let roots = self.executor.iter().map(ExecutorRecord::root).chain(&self.root);
        let roots: Vec<&ProcessIdentity> = roots.filter(|root| root.is_alive()).collect();
        for root in &roots {
            left.extend(descendants_of(Pid::from_raw(root.pid())));
        }
        let executor = self.executor.iter().map(|executor| &executor.process);
        left.extend(executor.filter(|executor| executor.is_alive()).filter_map(LiveProcess::of));
        // It ends by itself, but not at once. Earlier it may have to end what this look did not find.
        if left.is_empty() {
            left.extend(roots.into_iter().filter_map(LiveProcess::of));
        }
        left
    }
}

async fn remove_mps_clients(directory: &RankDirectory, removal: ClientRemoval, left: &[LiveProcess]) {
    let processes = left.iter().map(|process| process.pid).collect();
    if let Err(error) = remove(removal, processes).await {
        let directory = directory.path().display();
        tracing::warn!(%directory, error, "killing a lost rank without confirmation from its MPS server");
    }
}
