//! Finds out how a rank ended whose executor hung up, and sees to it that nothing of it is left.
//!
//! An executor writes the outcome before it goes. One that went without was killed, or its machine was
//! restarted: what it held is found by its environment and killed, and an outcome is written in its stead.

use std::time::Duration;

use cohabit_gpu::mps::ClientRemoval;
use cohabit_types::Outcome;
use nix::sys::signal::Signal;
use tokio::time::{Instant, sleep};

use crate::process::{LiveProcess, send, with_environment};
use crate::rank_folder::{Flush, OutcomeRecord, RankDirectory};
use crate::removal::remove;
use crate::{clock, files};

/// How long an executor that hung up may take to go.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How the rank ended. Waits until nothing of it is left.
pub(crate) async fn of(folder: &RankDirectory) -> OutcomeRecord {
    let deadline = Instant::now() + EXIT_TIMEOUT;
    if let Ok(Some(ended)) = folder.ended() {
        return ended;
    }
    while is_alive(folder) && Instant::now() < deadline {
        match folder.ended() {
            Ok(Some(ended)) => return ended,
            Ok(None) | Err(_) => sleep(POLL_INTERVAL).await,
        }
    }
    match folder.ended() {
        Ok(Some(ended)) => ended,
        Ok(None) => lost(folder, "its executor was killed, or the machine was restarted").await,
        Err(error) => lost(folder, &error.to_string()).await,
    }
}

async fn lost(folder: &RankDirectory, why: &str) -> OutcomeRecord {
    clear(folder).await;
    let last_words = files::read(&folder.executor_log()).unwrap_or_default();
    let last_words = String::from_utf8_lossy(&last_words);
    let detail = match last_words.lines().last() {
        Some(words) => format!("{why} ({words})"),
        None => why.to_owned(),
    };
    tracing::warn!(folder = %folder.path().display(), detail, "a rank was lost");
    let ended = OutcomeRecord::without_start(Outcome::Lost(detail), clock::now());
    if let Err(error) = folder.write_ended(&ended, Flush::Now) {
        tracing::warn!(%error, "the loss of a rank could not be written down");
    }
    ended
}

/// Kills the executor, should it hang, and everything that carries the mark of the rank, until nothing does.
/// Clients of an MPS server are taken off it first.
pub(crate) async fn clear(folder: &RankDirectory) {
    let executor = folder.identity().ok().flatten();
    if executor.as_ref().is_some_and(|executor| !executor.is_of_this_boot()) {
        return;
    }
    let start = folder.start().ok().flatten();
    let (mut removal, cgroup) = start.map_or((None, None), |start| (start.removal, start.cgroup));
    loop {
        let executor = executor.as_ref().filter(|executor| executor.is_alive());
        if let Some(executor) = executor {
            executor.signal(Signal::SIGKILL);
        }
        let left = with_environment("COHABIT_PROGRESS", folder.progress().as_os_str());
        if executor.is_none() && left.is_empty() {
            if let Some(cgroup) = cgroup {
                cgroup.clear().await;
            }
            return;
        }
        if let Some(removal) = removal.take() {
            remove_mps_clients(folder, removal, &left).await;
        }
        left.iter().for_each(|process| send(process.pid, Signal::SIGKILL));
        sleep(POLL_INTERVAL).await;
    }
}

async fn remove_mps_clients(folder: &RankDirectory, removal: ClientRemoval, left: &[LiveProcess]) {
    let processes = left.iter().map(|process| process.pid).collect();
    if let Err(trouble) = remove(removal, processes).await {
        let folder = folder.path().display();
        tracing::warn!(%folder, trouble, "a lost rank is killed without the word of its MPS server");
    }
}

fn is_alive(folder: &RankDirectory) -> bool {
    folder.identity().ok().flatten().is_some_and(|executor| executor.is_alive())
}
