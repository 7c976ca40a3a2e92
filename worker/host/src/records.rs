//! The content of the files in a rank's directory, as programs use it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cohabit_gpu::mps::ClientRemoval;
use cohabit_types::{Outcome, Progress, RankId, Span, Time};
use cohabit_worker_core::{RankExit, RankStart};

use crate::account::Account;
use crate::cgroup::RankCgroup;
use crate::log::LogLimits;
use crate::process::ProcessIdentity;

/// Everything an executor needs to start a rank: `start.json`.
#[derive(Debug, Clone, PartialEq)]
pub struct StartRecord {
    /// The rank.
    pub rank: RankStart,
    /// Where its process starts, if not in the working directory of its job: in a copy of its code.
    pub workdir: Option<PathBuf>,
    /// The program that it runs, if it is a part of an application; the command of its job otherwise.
    pub program: Option<PathBuf>,
    /// The complete environment of its process.
    pub environment: BTreeMap<String, String>,
    /// How long the rank may run while no daemon that reaches the head is connected to its executor.
    pub orphan_grace: Span,
    /// How long the executor relies on the daemon's last word that the head can be reached. `None` only in
    /// files of the first daemons, which did not repeat that word.
    pub lease_term: Option<Span>,
    /// When the head was last known to be reached. `None` only in files of release 0.1, whose executors know
    /// no times of leases.
    pub leased_at: Option<Time>,
    /// How much of its output is kept.
    pub log: LogLimits,
    /// When the host booted, by the clock that daemon and executor share. `None` only in files of the first
    /// daemons.
    pub booted_at: Option<Time>,
    /// How its processes are removed from the MPS server of its GPU, if they are clients of one.
    pub removal: Option<ClientRemoval>,
    /// The account it runs as; without one, it runs as its executor does.
    pub account: Option<Account>,
    /// The cgroup that enforces the limits of its job, where cgroups can be used.
    pub cgroup: Option<RankCgroup>,
}

impl StartRecord {
    /// Where its process starts.
    #[must_use]
    pub fn workdir(&self) -> &Path {
        self.workdir.as_deref().unwrap_or(Path::new(&self.rank.spec.workdir))
    }
}

/// The processes that run a rank: `executor.json`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutorRecord {
    /// The executor.
    pub process: ProcessIdentity,
    /// Its parent, which becomes the parent of the rank's processes when it is killed. `None` for executors
    /// of release 0.1, and where no second process could be started.
    pub watchdog: Option<ProcessIdentity>,
}

impl ExecutorRecord {
    /// The process of which all others are descendants.
    #[must_use]
    pub fn root(&self) -> &ProcessIdentity {
        self.watchdog.as_ref().unwrap_or(&self.process)
    }
}

/// How a rank ended: `outcome.json`, and `acknowledged.json` once the head knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct OutcomeRecord {
    /// Which rank: filled in when it is written to the directory of one. `None` of further processes, and in
    /// files of release 0.1.
    pub rank: Option<RankId>,
    /// How and when it ended.
    pub ending: RankExit,
    /// When its process started, if it did.
    pub started_at: Option<Time>,
    /// Its last progress.
    pub progress: Option<Progress>,
}

impl OutcomeRecord {
    /// The outcome of a rank that may never have run.
    #[must_use]
    pub fn without_start(outcome: Outcome, at: Time) -> OutcomeRecord {
        let ending = RankExit { outcome, stopped: None, at };
        OutcomeRecord { rank: None, ending, started_at: None, progress: None }
    }
}
