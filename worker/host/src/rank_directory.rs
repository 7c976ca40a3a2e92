//! The directory of one rank: everything about it that outlives a process.
//!
//! ```text
//! start.json         what to start; written by the daemon before the executor gets the rank
//! socket             where the executor listens (*)
//! executor.json      which processes the executor and its watchdog are (*)
//! executor.log       error messages of the executor, if there are any (*)
//! script             the job's script, if it has one
//! progress           where the rank writes its progress
//! input              what clients have sent for its standard input; input.end is there once that is all
//! terminal/          what clients type on its terminal, see [`crate::terminal`]
//! exec/              its further processes, see [`crate::exec`]
//! log/               the rank's output, if there is any
//! outcome.json       how it ended; renamed to acknowledged.json once the head knows it
//! ```
//!
//! Once the head knows how the rank ended, only its output and messages of its executor stay, with that file.
//! If there are none, the directory is removed. `ended_rank` does both.
//!
//! (*) These files belong to the executor. When its rank has ended and it gets another one, they move to the
//! directory of that rank. [`crate::format`] defines the JSON files.
//!
//! Only the outcome is flushed to disk: at once if the head cannot be told now, else a moment later if the
//! head has still not acknowledged it (decision 019). A power cut ends ranks and daemon together, and about a
//! rank that a daemon does not know there is nothing to report.

mod open;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use cohabit_types::{AttemptId, JobId, RankId, StopReason};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::files::{
    FileContext, FileError, WriteMode, allow_traversal, append_to, create_directory, remove_if_exists,
    sync_if_exists,
};
use crate::format::{read_versioned, write_versioned};
use crate::records::{ExecutorRecord, OutcomeRecord, StartRecord};
use crate::terminal::TerminalDirectory;
pub use open::OpenRankDirectory;
pub(crate) use open::SOCKET;

pub(crate) const START: &str = "start.json";
pub(crate) const IDENTITY: &str = "executor.json";
pub(crate) const ACKNOWLEDGED: &str = "acknowledged.json";
pub(crate) const LOG: &str = "log";
pub(crate) const PROGRESS: &str = "progress";
pub(crate) const SERIES: &str = "series";
pub(crate) const EXECUTOR_LOG: &str = "executor.log";
pub(crate) const BELL: &str = "bell";

/// The path of a rank's directory.
#[derive(Debug, Clone)]
pub struct RankDirectory(PathBuf);

/// When an outcome is flushed to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// Before the write returns.
    Now,
    /// By the daemon, if the head has not acknowledged it soon.
    Later,
}

impl RankDirectory {
    pub fn new(path: impl Into<PathBuf>) -> RankDirectory {
        RankDirectory(path.into())
    }

    /// The directory of this rank in the directory of all ranks.
    pub fn for_rank(ranks: &Path, id: RankId) -> RankDirectory {
        let attempt = ranks.join(id.attempt.job.to_string()).join(id.attempt.attempt.to_string());
        RankDirectory(attempt.join(id.rank.to_string()))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn script(&self) -> PathBuf {
        self.0.join("script")
    }

    /// What clients have sent for its standard input.
    pub fn input(&self) -> PathBuf {
        self.0.join("input")
    }

    /// Is there once that is all.
    pub fn input_end(&self) -> PathBuf {
        self.0.join("input.end")
    }

    /// What clients type on its terminal.
    pub fn terminal(&self) -> TerminalDirectory {
        TerminalDirectory::new(self.0.join("terminal"))
    }

    pub fn progress(&self) -> PathBuf {
        self.0.join(PROGRESS)
    }

    pub fn log(&self) -> PathBuf {
        self.0.join(LOG)
    }

    /// The metrics of the rank over its steps.
    pub fn series(&self) -> PathBuf {
        self.0.join(SERIES)
    }

    pub fn executor_log(&self) -> PathBuf {
        self.0.join(EXECUTOR_LOG)
    }

    /// Whether its job has written to the file for progress.
    #[must_use]
    pub fn has_progress(&self) -> bool {
        fs::symlink_metadata(self.progress()).is_ok_and(|found| found.len() > 0)
    }

    /// Creates the directory.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn create(&self) -> Result<(), FileError> {
        create_directory(&self.0)
    }

    /// Writes `start.json`, and lets the account of the rank pass to its files.
    ///
    /// # Errors
    /// When either fails.
    pub fn prepare(&self, start: &StartRecord) -> Result<(), FileError> {
        if start.account.is_some() {
            // The directories of the rank, its attempt and its job.
            self.0.ancestors().take(3).try_for_each(allow_traversal)?;
        }
        write_versioned(&self.start_file(), start, WriteMode::ForThisBoot)
    }

    pub fn start(&self) -> Result<Option<StartRecord>, FileError> {
        read_versioned(&self.start_file())
    }

    pub fn write_identity(&self, executor: &ExecutorRecord) -> Result<(), FileError> {
        write_versioned(&self.identity_file(), executor, WriteMode::ForThisBoot)
    }

    pub fn identity(&self) -> Result<Option<ExecutorRecord>, FileError> {
        read_versioned(&self.identity_file())
    }

    /// Creates the bell of an executor: a named pipe by which the daemon tells it of requests for further
    /// processes.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn create_bell(&self) -> io::Result<PathBuf> {
        let bell = self.0.join(BELL);
        remove_if_exists(&bell)?;
        mkfifo(&bell, Mode::S_IRUSR | Mode::S_IWUSR)?;
        Ok(bell)
    }

    /// Redirects the standard error of this process to `executor.log`.
    pub fn redirect_stderr(&self) -> Result<(), FileError> {
        let path = self.executor_log();
        let file = append_to(&path)?;
        nix::unistd::dup2_stderr(&file).at("write to", &path)
    }

    pub fn write_ended(&self, ended: &OutcomeRecord, flush: Flush) -> Result<(), FileError> {
        let mode = match flush {
            Flush::Now => WriteMode::Durable,
            Flush::Later => WriteMode::ForThisBoot,
        };
        let ended = OutcomeRecord { rank: self.id(), ..ended.clone() };
        write_versioned(&self.outcome_file(), &ended, mode)
    }

    /// Flushes the outcome to disk, unless the head has acknowledged it.
    pub fn flush_ended(&self) -> Result<(), FileError> {
        sync_if_exists(&self.outcome_file())
    }

    /// How the rank ended, if it did and the head may not know it. What the rank left that had the directory
    /// before may be back after a power cut; it is not this one's.
    pub fn ended(&self) -> Result<Option<OutcomeRecord>, FileError> {
        let ended: Option<OutcomeRecord> = read_versioned(&self.outcome_file())?;
        Ok(ended.filter(|ended| ended.rank.is_none() || ended.rank == self.id()))
    }

    /// The rank, if this is the directory of one and not of a further process.
    fn id(&self) -> Option<RankId> {
        let mut names = self.0.iter().rev().map(|name| name.to_str());
        let (rank, attempt, job) = (names.next()??, names.next()??, names.next()??);
        Some(job.parse::<JobId>().ok()?.attempt(attempt.parse().ok()?).rank(rank.parse().ok()?))
    }

    /// Adds to the outcome why the rank was stopped, which its executor did not know.
    pub fn explain(&self, reason: StopReason) -> Result<(), FileError> {
        let Some(mut ended) = self.ended()? else { return Ok(()) };
        ended.ending.stopped = Some(reason);
        self.write_ended(&ended, Flush::Now)
    }

    /// Marks the outcome as known to the head. Does nothing the second time.
    pub fn acknowledge(&self) -> Result<(), FileError> {
        match fs::rename(self.outcome_file(), self.acknowledged_file()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            renamed => renamed.at("rename", &self.outcome_file()),
        }
    }

    pub fn is_acknowledged(&self) -> bool {
        self.acknowledged_file().exists()
    }

    /// Whether the rank has ended, and prints nothing more.
    pub fn is_over(&self) -> bool {
        self.outcome_file().exists() || self.is_acknowledged()
    }

    pub fn acknowledged_file(&self) -> PathBuf {
        self.0.join(ACKNOWLEDGED)
    }

    pub(crate) fn start_file(&self) -> PathBuf {
        self.0.join(START)
    }

    fn identity_file(&self) -> PathBuf {
        self.0.join(IDENTITY)
    }

    pub(crate) fn outcome_file(&self) -> PathBuf {
        self.0.join("outcome.json")
    }
}

/// The ids of all ranks with a directory below `ranks`. Other names are ignored, and symbolic links not
/// followed.
#[must_use]
pub fn ranks_in(ranks: &Path) -> Vec<RankId> {
    let mut found = Vec::new();
    for attempt in attempts_in(ranks) {
        let directory = ranks.join(attempt.job.to_string()).join(attempt.attempt.to_string());
        found.extend(directories_in::<u32>(&directory).into_iter().map(|rank| attempt.rank(rank)));
    }
    found.sort_unstable();
    found
}

/// All attempts that have a directory below this one.
#[must_use]
pub fn attempts_in(path: &Path) -> Vec<AttemptId> {
    let of_job = |job: JobId| {
        let attempts = directories_in::<u32>(&path.join(job.to_string())).into_iter();
        attempts.map(move |attempt| AttemptId { job, attempt })
    };
    directories_in::<JobId>(path).into_iter().flat_map(of_job).collect()
}

/// The names of the directories in this one, as far as they are such names in the form that we write.
#[must_use]
pub fn directories_in<N: std::str::FromStr + ToString>(path: &Path) -> Vec<N> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let names = directories.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| name.parse::<N>().ok().filter(|read| read.to_string() == name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directories_with_our_names_are_ranks() {
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
