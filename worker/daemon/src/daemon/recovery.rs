//! Finds the ranks that earlier daemons left: those that run, and those whose end the head may not know.
//!
//! It asks each executor in turn, for all that it knows of the rank; one that is gone has left an outcome, or
//! is lost. A client of an MPS server that is gone, too, has ended because of that: nobody was there to see
//! it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use cohabit_types::{AttemptId, JobId, RankId, StopReason, Time};
use cohabit_worker_core::{FoundRank, Stopping};
use tokio::time::timeout;

use super::ending;
use super::gpu::MpsDirectories;
use super::spawn::{ExecutorConnection, connect};
use super::state::StateDirectory;
use crate::files::remove_directory;
use crate::rank_folder::{RankDirectory, StartRecord};
use crate::wire::ExecutorEvent;

/// How long an executor may take to say that its rank runs. It starts the rank before it says anything.
const FIRST_MESSAGE_TIMEOUT: Duration = Duration::from_secs(30);

/// A rank that was found.
pub(crate) struct RecoveredRank {
    pub(crate) found: FoundRank,
    /// To its executor, if it runs.
    pub(crate) connection: Option<ExecutorConnection>,
}

/// All of them.
pub(crate) async fn recover(state: &StateDirectory, gpus: &MpsDirectories) -> Vec<RecoveredRank> {
    let mut recovered = Vec::new();
    for id in ranks_in(&state.ranks()) {
        let folder = RankDirectory::of(&state.ranks(), id);
        if folder.is_acknowledged() {
            continue;
        }
        match folder.start() {
            Ok(Some(start)) => recovered.push(recover_rank(&folder, start, gpus).await),
            Ok(None) => discard(&folder, "it was never started").await,
            Err(error) => discard(&folder, &error.to_string()).await,
        }
    }
    if !recovered.is_empty() {
        let running = recovered.iter().filter(|rank| rank.connection.is_some()).count();
        tracing::info!(running, ended = recovered.len() - running, "found ranks of an earlier worker daemon");
    }
    recovered
}

async fn recover_rank(folder: &RankDirectory, start: StartRecord, gpus: &MpsDirectories) -> RecoveredRank {
    let start = start.rank;
    if let Ok(mut connection) = connect(folder)
        && let Some(RunningRank { started_at, stopping }) = first_words(&mut connection).await
    {
        let found = FoundRank { start, started_at, stopping, ending: None, progress: None };
        return RecoveredRank { found, connection: Some(connection) };
    }
    let mut ended = ending::of(folder).await;
    if !ended.ending.outcome.succeeded()
        && ended.ending.stopped.is_none()
        && gpus.lost_its_mps_server(&start).await
    {
        let why = StopReason::MpsFaultVictim;
        ended.ending.stopped = Some(why);
        // The traces of the fault go with its daemon, perhaps before the head has heard.
        if let Err(error) = folder.explain(why) {
            tracing::warn!(folder = %folder.path().display(), %error, "why a rank ended is not written down");
        }
    }
    let started_at = ended.started_at.unwrap_or(ended.ending.at);
    let found =
        FoundRank { start, started_at, stopping: None, ending: Some(ended.ending), progress: ended.progress };
    RecoveredRank { found, connection: None }
}

/// What its executor says first of a rank that runs.
struct RunningRank {
    started_at: Time,
    stopping: Option<Stopping>,
}

/// Nothing if the executor goes, or says nothing.
async fn first_words(connection: &mut ExecutorConnection) -> Option<RunningRank> {
    let mut stopping = None;
    loop {
        let line = timeout(FIRST_MESSAGE_TIMEOUT, connection.words.next_line()).await.ok()?.ok()??;
        match serde_json::from_str(&line).ok()? {
            ExecutorEvent::Stopping(so_far) => stopping = Some(so_far),
            ExecutorEvent::Started(started_at) => return Some(RunningRank { started_at, stopping }),
            ExecutorEvent::Process(_) | ExecutorEvent::Progress(_) => return None,
        }
    }
}

/// What nobody can make sense of must not run on.
async fn discard(folder: &RankDirectory, why: &str) {
    tracing::warn!(folder = %folder.path().display(), why, "an unusable rank was found and is put aside");
    ending::clear(folder).await;
    if let Err(error) = remove_directory(folder.path()) {
        tracing::warn!(folder = %folder.path().display(), %error, "it could not be removed");
    }
}

/// The ids that the names of folders say; other names are not ours. Links are not followed.
pub(crate) fn ranks_in(ranks: &Path) -> Vec<RankId> {
    let mut found = Vec::new();
    for job in folders_in::<JobId>(ranks) {
        for attempt in folders_in::<u32>(&ranks.join(job.to_string())) {
            let attempt = AttemptId { job, attempt };
            let folder = ranks.join(job.to_string()).join(attempt.attempt.to_string());
            found.extend(folders_in::<u32>(&folder).into_iter().map(|rank| attempt.rank(rank)));
        }
    }
    found.sort_unstable();
    found
}

/// What the names of the folders in this one mean; names that mean nothing, or are not written as we do, are
/// left out.
pub(crate) fn folders_in<N: std::str::FromStr + ToString>(folder: &Path) -> Vec<N> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let names = folders.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| name.parse::<N>().ok().filter(|read| read.to_string() == name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_that_we_made_are_ranks() {
        let folder = tempfile::tempdir().unwrap();
        let ranks = folder.path();
        for path in ["12/1/0", "12.5/2/3", "12/1/x", "12/01/0", "+7/1/0", "lost+found", "13/1"] {
            fs::create_dir_all(ranks.join(path)).unwrap();
        }
        std::os::unix::fs::symlink(ranks.join("12"), ranks.join("14")).unwrap();
        fs::write(ranks.join("15"), "").unwrap();
        let expected = [JobId::new(12).attempt(1).rank(0), JobId::member(12, 5).attempt(2).rank(3)];
        assert_eq!(ranks_in(ranks), expected);
    }
}
