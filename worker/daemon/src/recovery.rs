//! Recovers the ranks that earlier daemons left: those that run, and those whose end the head may not know.
//!
//! The files are read before the actors start, so that a daemon that does not understand them does not start
//! ([`scan`]). Then each executor is asked for the state of its rank ([`recover`]). An executor that is gone
//! has left an outcome, or its rank is lost. If the MPS server of a rank has failed meanwhile, the rank ended
//! because of that, because nobody was there to see anything else.

use std::sync::Arc;
use std::time::Duration;

use cohabit_actor::blocking;
use cohabit_host::files::{FileError, remove_directory};
use cohabit_host::format::JsonLine;
use cohabit_host::messages::ExecutorEvent;
use cohabit_host::process::ProcessIdentity;
use cohabit_host::rank_directory::{RankDirectory, ranks_in};
use cohabit_host::records::StartRecord;
use cohabit_types::{RankId, StopReason, Time};
use cohabit_worker_core::{FoundRank, Stopping};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::gpu::MpsDirectories;
use crate::rank::{AdoptedExecutor, LeaseFormat};
use crate::rank_exit;
use crate::spawn::{ExecutorConnection, connect};
use crate::state_directory::StateDirectory;

/// How long an executor may take to say that its rank runs. It starts the rank before it answers.
const FIRST_EVENTS_TIMEOUT: Duration = Duration::from_secs(30);

/// The directory of a rank that an earlier daemon left.
pub(crate) struct LeftRank {
    directory: RankDirectory,
    /// `None` if the rank was never started.
    start: Result<Option<StartRecord>, FileError>,
    /// The process of which all its others are descendants, which may be gone.
    root: Option<(RankId, ProcessIdentity)>,
}

impl LeftRank {
    /// The rank and the root of its processes, where there was one.
    pub(crate) fn root(&self) -> Option<&(RankId, ProcessIdentity)> {
        self.root.as_ref()
    }
}

/// A recovered rank.
pub(crate) struct RecoveredRank {
    pub(crate) found: FoundRank,
    /// Its executor, if it runs.
    pub(crate) executor: Option<AdoptedExecutor>,
}

/// Reads the start files of all ranks that are not acknowledged. Blocks.
///
/// # Errors
/// When a file was written by a later version of Cohabit. Nothing is changed then: that version can go on.
pub(crate) fn scan(state: &StateDirectory) -> Result<Vec<LeftRank>, FileError> {
    let mut left = Vec::new();
    for id in ranks_in(&state.ranks()) {
        let directory = RankDirectory::for_rank(&state.ranks(), id);
        if directory.is_acknowledged() {
            continue;
        }
        // The file of the rank that had the directory before may be back after a power cut.
        let start = refuse_newer(directory.start())?;
        let start = start.map(|start| start.filter(|start| start.rank.rank == id));
        let _readable = refuse_newer(directory.ended().map(drop))?.is_ok();
        let executor = refuse_newer(directory.identity())?.ok().flatten();
        let root = executor.map(|executor| (id, executor.root().clone()));
        left.push(LeftRank { directory, start, root });
    }
    Ok(left)
}

fn refuse_newer<T>(read: Result<T, FileError>) -> Result<Result<T, FileError>, FileError> {
    match read {
        Err(error) if error.is_of_newer_version() => Err(error),
        other => Ok(other),
    }
}

/// Recovers these ranks, all at once: an executor that hangs delays none but its own.
pub(crate) async fn recover(left: Vec<LeftRank>, gpus: &Arc<MpsDirectories>) -> Vec<RecoveredRank> {
    let recoveries: JoinSet<_> = left.into_iter().map(|left| recover_one(left, Arc::clone(gpus))).collect();
    let mut recovered: Vec<RecoveredRank> = recoveries.join_all().await.into_iter().flatten().collect();
    recovered.sort_by_key(|rank| rank.found.start.rank);
    if !recovered.is_empty() {
        let running = recovered.iter().filter(|rank| rank.executor.is_some()).count();
        tracing::info!(
            running,
            ended = recovered.len() - running,
            "recovered ranks of an earlier worker daemon"
        );
    }
    recovered
}

/// `None` if there is nothing to recover.
async fn recover_one(left: LeftRank, gpus: Arc<MpsDirectories>) -> Option<RecoveredRank> {
    let LeftRank { directory, start, root: _ } = left;
    match start {
        Ok(Some(start)) => return Some(recover_rank(&directory, start, &gpus).await),
        Ok(None) => discard(&directory, "it was never started").await,
        Err(error) => discard(&directory, &error.to_string()).await,
    }
    None
}

async fn recover_rank(directory: &RankDirectory, start: StartRecord, gpus: &MpsDirectories) -> RecoveredRank {
    let leases = start.leased_at.map_or(LeaseFormat::WithoutTimes, |_| LeaseFormat::WithTimes);
    let start = start.rank;
    if let Ok(mut connection) = connect(directory).await
        && let Some(RunningRank { started_at, stopping }) = first_events(&mut connection).await
    {
        let found = FoundRank { start, started_at, stopping, ending: None, progress: None };
        return RecoveredRank { found, executor: Some(AdoptedExecutor { connection, started_at, leases }) };
    }
    let mut ended = rank_exit::determine_outcome(directory).await;
    if !ended.ending.outcome.succeeded()
        && ended.ending.stopped.is_none()
        && gpus.lost_its_mps_server(&start).await
    {
        let reason = StopReason::MpsFaultVictim;
        ended.ending.stopped = Some(reason);
        // Stored, because the evidence goes with the MPS daemon, perhaps before the head has heard of it.
        let target = directory.clone();
        if let Err(error) = blocking(move || target.explain(reason)).await {
            let directory = directory.path().display();
            tracing::warn!(%directory, %error, "the reason why a rank ended could not be stored");
        }
    }
    let started_at = ended.started_at.unwrap_or(ended.ending.at);
    let found =
        FoundRank { start, started_at, stopping: None, ending: Some(ended.ending), progress: ended.progress };
    RecoveredRank { found, executor: None }
}

/// What an executor says first about a running rank.
struct RunningRank {
    started_at: Time,
    stopping: Option<Stopping>,
}

/// `None` if the executor closes the connection or says nothing. Messages of a later version are passed over.
async fn first_events(connection: &mut ExecutorConnection) -> Option<RunningRank> {
    let mut stopping = None;
    loop {
        let line = timeout(FIRST_EVENTS_TIMEOUT, connection.events.next_line()).await.ok()?.ok()??;
        match ExecutorEvent::decode(&line) {
            Ok(ExecutorEvent::Stopping(progress)) => stopping = Some(progress),
            Ok(ExecutorEvent::Started(started_at)) => return Some(RunningRank { started_at, stopping }),
            Ok(ExecutorEvent::Process(_) | ExecutorEvent::Progress(_) | ExecutorEvent::Ended(_)) => {
                return None;
            }
            Err(error) => tracing::debug!(%error, line, "passed over an unknown message of an executor"),
        }
    }
}

/// A rank that cannot be understood must not keep running.
async fn discard(directory: &RankDirectory, why: &str) {
    tracing::warn!(directory = %directory.path().display(), why, "removing an unusable rank");
    rank_exit::kill_remaining(directory).await;
    let path = directory.path().to_owned();
    blocking(move || {
        if let Err(error) = remove_directory(&path) {
            tracing::warn!(directory = %path.display(), %error, "the directory of a rank could not be removed");
        }
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::fs;

    use cohabit_types::JobId;

    use super::*;

    #[test]
    fn a_rank_of_a_later_version_stops_the_daemon_and_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (state, _lock) = StateDirectory::open(folder.path()).unwrap();
        let rank = RankDirectory::for_rank(&state.ranks(), JobId::new(12).attempt(1).rank(0));
        fs::create_dir_all(rank.path()).unwrap();
        for file in ["start.json", "outcome.json", "executor.json"] {
            fs::write(rank.path().join(file), r#"{"version":99,"all":"new"}"#).unwrap();
            let refusal = scan(&state).err().expect(file).to_string();
            assert!(refusal.contains(file) && refusal.contains("version 99"), "{refusal}");
            fs::remove_file(rank.path().join(file)).unwrap();
        }
        fs::write(rank.path().join("start.json"), "{").unwrap();
        assert!(scan(&state).unwrap()[0].start.is_err(), "a damaged file is no reason not to start");
    }
}
