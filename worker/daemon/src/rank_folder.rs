//! The folder of one rank: everything that is known of it outside of memory.
//!
//! ```text
//! start.json         what to start; written by the daemon before it starts the executor
//! socket             where the executor listens (*)
//! executor.json      which process the executor is (*)
//! executor.log       the executor's own last words, if it has any (*)
//! script             the job's script, if it brought one
//! progress           where the rank writes its progress
//! log/               what the rank printed, if anything
//! outcome.json       how it ended; becomes acknowledged.json once the head knows it
//! ```
//!
//! (*) are the executor's own: when its rank has ended they move with it to the folder of its next one.
//!
//! Only the outcome is flushed to the disk: at once if the head cannot be told of it now, else a moment later
//! if the head has still not acknowledged it (decision 019). A power cut ends the rank as well as the daemon,
//! and a daemon that knows nothing of a rank any more has said all there is to say.

mod open;

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use cohabit_gpu::mps::ClientRemoval;
use cohabit_types::{AttemptId, Outcome, Progress, RankId, Span, StopReason, Time};
use cohabit_worker_core::{RankExit, RankStart};
use serde::{Deserialize, Serialize};

use crate::files::{
    FileContext, FileError, allow_traversal, append_to, create_directory, read_json, sync_if_exists,
    write_json, write_json_for_this_boot, write_json_in_place,
};
use crate::isolation::{Account, RankCgroup};
use crate::log::LogLimits;
use crate::process::ProcessIdentity;
pub(crate) use open::OpenRankDirectory;

const IDENTITY: &str = "executor.json";
const EXECUTOR_LOG: &str = "executor.log";

/// Where a rank's files are.
#[derive(Debug, Clone)]
pub(crate) struct RankDirectory(PathBuf);

/// All that an executor needs to know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StartRecord {
    /// The rank.
    pub(crate) rank: RankStart,
    /// The complete environment of its process.
    pub(crate) environment: std::collections::BTreeMap<String, String>,
    /// How long it may run while nobody who knows the head speaks to its executor.
    pub(crate) orphan_grace: Span,
    /// After this long without word that the head can be reached it is not taken to be reachable. Daemons of
    /// old did not repeat it.
    #[serde(default)]
    pub(crate) lease_term: Option<Span>,
    /// How much of its output is kept.
    pub(crate) log: LogLimits,
    /// When the machine was started by the clock that daemon and executor share.
    #[serde(default)]
    pub(crate) booted_at: Option<Time>,
    /// How its processes are taken off the MPS server of its GPU, if they are its clients.
    #[serde(default)]
    pub(crate) removal: Option<ClientRemoval>,
    /// As whom it runs; as its executor without one.
    #[serde(default)]
    pub(crate) account: Option<Account>,
    /// What holds it to what its job claims, where anything does.
    #[serde(default)]
    pub(crate) cgroup: Option<RankCgroup>,
}

/// A rank that ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct OutcomeRecord {
    /// How.
    pub(crate) ending: RankExit,
    /// When its process started, if it ever did.
    pub(crate) started_at: Option<Time>,
    /// The last that was heard of it.
    pub(crate) progress: Option<Progress>,
}

/// When an outcome is made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flush {
    /// Before anything else.
    Now,
    /// By the daemon, if the head has not acknowledged it soon.
    Later,
}

impl OutcomeRecord {
    /// Of a rank of which nobody knows that it ever ran.
    pub(crate) fn without_start(outcome: Outcome, at: Time) -> OutcomeRecord {
        OutcomeRecord { ending: RankExit { outcome, stopped: None, at }, started_at: None, progress: None }
    }
}

impl RankDirectory {
    pub(crate) fn new(path: impl Into<PathBuf>) -> RankDirectory {
        RankDirectory(path.into())
    }

    /// Where the rank's folder is within the folder of all ranks.
    pub(crate) fn of(ranks: &Path, id: RankId) -> RankDirectory {
        let attempt = ranks.join(id.attempt.job.to_string()).join(id.attempt.attempt.to_string());
        RankDirectory(attempt.join(id.rank.to_string()))
    }

    /// Whose progress file this is, if it is in the folder of a rank within the folder of all ranks.
    pub(crate) fn owner_of(ranks: &Path, progress: &Path) -> Option<RankId> {
        let names: Vec<&str> = progress.strip_prefix(ranks).ok()?.iter().filter_map(OsStr::to_str).collect();
        let [job, attempt, rank, _] = names[..] else { return None };
        let attempt = AttemptId { job: job.parse().ok()?, attempt: attempt.parse().ok()? };
        let owner = attempt.rank(rank.parse().ok()?);
        (RankDirectory::of(ranks, owner).progress() == progress).then_some(owner)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn script(&self) -> PathBuf {
        self.0.join("script")
    }

    pub(crate) fn progress(&self) -> PathBuf {
        self.0.join("progress")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.0.join("log")
    }

    pub(crate) fn executor_log(&self) -> PathBuf {
        self.0.join(EXECUTOR_LOG)
    }

    /// Makes the folder and says in it what to start.
    pub(crate) fn prepare(&self, start: &StartRecord) -> Result<(), FileError> {
        create_directory(&self.0)?;
        if start.account.is_some() {
            // That of the rank, of its attempt and of its job; what is in there is not for everybody.
            self.0.ancestors().take(3).try_for_each(allow_traversal)?;
        }
        // A daemon that dies meanwhile leaves a rank that was never started, whole or not.
        write_json_in_place(&self.start_file(), start)
    }

    pub(crate) fn start(&self) -> Result<Option<StartRecord>, FileError> {
        read_json(&self.start_file())
    }

    pub(crate) fn write_identity(&self, executor: &ProcessIdentity) -> Result<(), FileError> {
        write_json_for_this_boot(&self.identity_file(), executor)
    }

    pub(crate) fn identity(&self) -> Result<Option<ProcessIdentity>, FileError> {
        read_json(&self.identity_file())
    }

    /// From now on what this process has to say to its standard error goes into the folder.
    pub(crate) fn redirect_stderr(&self) -> Result<(), FileError> {
        let path = self.executor_log();
        let file = append_to(&path)?;
        nix::unistd::dup2_stderr(&file).at("write to", &path)
    }

    pub(crate) fn write_ended(&self, ended: &OutcomeRecord, flush: Flush) -> Result<(), FileError> {
        match flush {
            Flush::Now => write_json(&self.outcome_file(), ended),
            Flush::Later => write_json_for_this_boot(&self.outcome_file(), ended),
        }
    }

    /// Makes the outcome durable, if it is still there because the head has not acknowledged it.
    pub(crate) fn flush_ended(&self) -> Result<(), FileError> {
        sync_if_exists(&self.outcome_file())
    }

    /// How the rank ended, if it did and the head may not know it.
    pub(crate) fn ended(&self) -> Result<Option<OutcomeRecord>, FileError> {
        read_json(&self.outcome_file())
    }

    /// Adds to how the rank ended why it was stopped, which its executor did not know.
    pub(crate) fn explain(&self, why: StopReason) -> Result<(), FileError> {
        let Some(mut ended) = self.ended()? else { return Ok(()) };
        ended.ending.stopped = Some(why);
        self.write_ended(&ended, Flush::Now)
    }

    /// The head knows how the rank ended. Asked twice, it is done once.
    pub(crate) fn acknowledge(&self) -> Result<(), FileError> {
        match fs::rename(self.outcome_file(), self.acknowledged_file()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            renamed => renamed.at("put aside", &self.outcome_file()),
        }
    }

    pub(crate) fn is_acknowledged(&self) -> bool {
        self.acknowledged_file().exists()
    }

    /// Whether nothing will be printed any more.
    pub(crate) fn is_over(&self) -> bool {
        self.outcome_file().exists() || self.is_acknowledged()
    }

    pub(crate) fn acknowledged_file(&self) -> PathBuf {
        self.0.join("acknowledged.json")
    }

    fn start_file(&self) -> PathBuf {
        self.0.join("start.json")
    }

    fn identity_file(&self) -> PathBuf {
        self.0.join(IDENTITY)
    }

    fn outcome_file(&self) -> PathBuf {
        self.0.join("outcome.json")
    }
}

#[cfg(test)]
mod tests {
    use cohabit_types::JobId;

    use super::*;

    #[test]
    fn a_progress_file_tells_whose_it_is() {
        let ranks = Path::new("/state/ranks");
        for id in [JobId::new(12).attempt(1).rank(0), JobId::member(12, 5).attempt(2).rank(3)] {
            assert_eq!(RankDirectory::owner_of(ranks, &RankDirectory::of(ranks, id).progress()), Some(id));
        }
        for other in
            ["/else/ranks/12/1/0/progress", "/state/ranks/12/1/0/log", "/state/ranks/012/1/0/progress", ""]
        {
            assert_eq!(RankDirectory::owner_of(ranks, Path::new(other)), None, "{other}");
        }
    }
}
