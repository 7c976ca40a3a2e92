//! Whose terminal it is: that of a job, whatever its attempt, or of one further process beside it.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _};

use cohabit_client::types::{ExecId, ExecOutput, ExecRead, JobId, LogPosition, RankId};
use cohabit_client::{Client, Error, while_away};

/// Whose terminal it is.
#[derive(Debug, Clone, Copy)]
pub(in crate::commands) enum TerminalOwner {
    /// The first rank of a job.
    Job(JobId),
    /// A further process.
    Exec(ExecId),
}

impl TerminalOwner {
    /// The rank in this attempt of its job, and the process beside it.
    pub(super) fn rank(self, attempt: u32) -> (RankId, Option<u64>) {
        match self {
            TerminalOwner::Job(job) => (job.attempt(attempt).rank(0), None),
            TerminalOwner::Exec(id) => (id.rank, Some(id.number)),
        }
    }

    /// The job.
    pub(super) const fn job(self) -> JobId {
        match self {
            TerminalOwner::Job(job) => job,
            TerminalOwner::Exec(id) => id.rank.attempt.job,
        }
    }

    /// The latest attempt.
    pub(super) async fn attempt(self, client: &Client) -> Result<u32, Error> {
        match self {
            TerminalOwner::Job(job) => Ok(client.job(job).record().await?.attempt),
            TerminalOwner::Exec(id) => Ok(id.rank.attempt.attempt),
        }
    }

    /// The keys that are this program's.
    pub(super) const fn escape_help(self) -> &'static str {
        match self {
            TerminalOwner::Job(_) => "after Enter, ~. detaches, ~~ types a ~, ~? shows this",
            TerminalOwner::Exec(_) => "after Enter, ~. ends it, ~~ types a ~, ~? shows this",
        }
    }

    /// What becomes of it when this command ends.
    pub(super) fn future(self) -> String {
        match self {
            TerminalOwner::Job(job) => format!("Job {job} goes on: cohabit attach {job}"),
            TerminalOwner::Exec(_) => "The process ends, too".to_owned(),
        }
    }
}

impl fmt::Display for TerminalOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TerminalOwner::Job(job) => write!(f, "job {job}"),
            TerminalOwner::Exec(id) => write!(f, "a process in job {}", id.rank.attempt.job),
        }
    }
}

/// A piece of the output of a further process; waits for a worker that is away for a while.
pub(in crate::commands) async fn read_present_exec(
    client: &Client,
    id: ExecId,
    from: LogPosition,
) -> Result<ExecOutput, Error> {
    while_away(|| client.read_exec(ExecRead { id, from })).await
}

/// Keys of hashers are the randomness of the standard library.
pub(in crate::commands) fn random_number() -> u64 {
    RandomState::new().build_hasher().finish()
}
