//! What this worker keeps apart: jobs of different users, and the cores and the memory of different jobs.
//!
//! Both are found out once, when the daemon starts, and neither is assumed: what is not kept apart here,
//! every screen says.
//!
//! ```text
//! order ─▶ daemon: Isolation::account, ::cgroup ─▶ start.json ─▶ executor: Account::act, RankCgroup::make
//! ```

mod account;
mod accounts;
mod cgroup;
mod inheritance;
mod known_accounts;
mod private_users;
mod raw;

use std::sync::Arc;

use cohabit_types::{Enforcement, Users};
use cohabit_worker_core::RankStart;

pub(crate) use account::Account;
pub use accounts::RootJobs;
pub(crate) use accounts::{AccountError, Chosen};
pub(crate) use cgroup::RankCgroup;
pub use cgroup::delegable;
pub(crate) use inheritance::shed;
pub(crate) use raw::enter_first;

use crate::daemon::state::StateFolder;
use crate::files::FileError;
use accounts::Accounts;
use cgroup::Cgroups;

/// How this worker keeps things apart; clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Isolation(Arc<Kept>);

#[derive(Debug)]
struct Kept {
    accounts: Accounts,
    /// Or why there are none.
    cgroups: Result<Cgroups, String>,
}

impl Isolation {
    /// Finds out what can be kept apart here, and makes ready for it: a worker with all rights opens the way
    /// through its state folder, one that a part of the cgroup tree is delegated to moves to a leaf of it.
    pub(crate) fn establish(state: &StateFolder, root_jobs: RootJobs) -> Result<Isolation, FileError> {
        let accounts = Accounts::of_this_worker(state.root(), root_jobs)?;
        let isolation = Isolation(Arc::new(Kept { accounts, cgroups: Cgroups::claim() }));
        isolation.log();
        match isolation.users() {
            Users::Apart => state.open_ways()?,
            Users::Together => {}
        }
        Ok(isolation)
    }

    /// A worker that keeps nothing apart.
    #[cfg(test)]
    pub(crate) fn none() -> Isolation {
        Isolation(Arc::new(Kept { accounts: Accounts::Own, cgroups: Err("not looked for".into()) }))
    }

    /// What the head is told.
    pub(crate) fn told(&self) -> cohabit_types::Isolation {
        cohabit_types::Isolation {
            users: self.users(),
            host_limits: match &self.0.cgroups {
                Ok(_) => Enforcement::Enforced,
                Err(why) => Enforcement::Unenforced(why.clone()),
            },
        }
    }

    pub(crate) fn users(&self) -> Users {
        match self.0.accounts {
            Accounts::Own => Users::Together,
            Accounts::OfUsers { .. } => Users::Apart,
        }
    }

    /// As whom the rank runs; nothing if all run as the worker itself.
    pub(crate) fn account(&self, rank: &RankStart) -> Result<Option<Chosen>, AccountError> {
        self.0.accounts.of(rank)
    }

    /// What holds the rank to what its job claims, where anything does.
    pub(crate) fn cgroup(&self, rank: &RankStart) -> Option<RankCgroup> {
        self.0.cgroups.as_ref().ok().map(|cgroups| cgroups.of(rank.rank, &rank.spec.demand))
    }

    fn log(&self) {
        match self.users() {
            Users::Apart => tracing::info!("each job runs as the account of its user"),
            Users::Together => {
                tracing::warn!("this worker is not root: the jobs of all users run as its own account");
            }
        }
        match &self.0.cgroups {
            Ok(_) => tracing::info!("jobs are held to the cores and the memory that they claim"),
            Err(why) => tracing::warn!(why, "cores and memory that jobs claim are not enforced"),
        }
    }
}
