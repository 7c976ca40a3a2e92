//! What this worker keeps apart: jobs of different users, and the cores and the memory of different jobs.
//!
//! Both are found out once, when the daemon starts, and neither is assumed: what is not kept apart here,
//! every screen says.
//!
//! ```text
//! order ─▶ daemon: Isolation::account, ::cgroup ─▶ start.json ─▶ executor: Account::act, RankCgroup::make
//! ```

mod account;
mod account_cache;
mod accounts;
mod cgroup;
mod inheritance;
mod private_users;
mod raw;

use std::sync::Arc;

use cohabit_types::{Enforcement, UserIsolation};
use cohabit_worker_core::RankStart;

pub(crate) use account::Account;
pub use accounts::RootJobs;
pub(crate) use accounts::{AccountChoice, AccountError};
pub(crate) use cgroup::RankCgroup;
pub use cgroup::check_delegation;
pub(crate) use inheritance::drop_inherited_state;
pub(crate) use raw::enter_cgroup_before_exec;

use crate::daemon::state::StateDirectory;
use crate::files::FileError;
use accounts::AccountPolicy;
use cgroup::Cgroups;

/// How this worker keeps things apart; clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Isolation(Arc<IsolationState>);

#[derive(Debug)]
struct IsolationState {
    accounts: AccountPolicy,
    /// Or why there are none.
    cgroups: Result<Cgroups, String>,
}

impl Isolation {
    /// Finds out what can be kept apart here, and makes ready for it: a worker with all rights opens the way
    /// through its state folder, one that a part of the cgroup tree is delegated to moves to a leaf of it.
    pub(crate) fn establish(state: &StateDirectory, root_jobs: RootJobs) -> Result<Isolation, FileError> {
        let accounts = AccountPolicy::of_this_worker(state.root(), root_jobs)?;
        let isolation = Isolation(Arc::new(IsolationState { accounts, cgroups: Cgroups::claim() }));
        isolation.log();
        match isolation.users() {
            UserIsolation::Apart => state.allow_traversal_of_state()?,
            UserIsolation::Together => {}
        }
        Ok(isolation)
    }

    /// A worker that keeps nothing apart.
    #[cfg(test)]
    pub(crate) fn none() -> Isolation {
        Isolation(Arc::new(IsolationState {
            accounts: AccountPolicy::Own,
            cgroups: Err("not looked for".into()),
        }))
    }

    /// What the head is told.
    pub(crate) fn report(&self) -> cohabit_types::Isolation {
        cohabit_types::Isolation {
            users: self.users(),
            host_limits: match &self.0.cgroups {
                Ok(_) => Enforcement::Enforced,
                Err(why) => Enforcement::Unenforced(why.clone()),
            },
        }
    }

    pub(crate) fn users(&self) -> UserIsolation {
        match self.0.accounts {
            AccountPolicy::Own => UserIsolation::Together,
            AccountPolicy::OfUsers { .. } => UserIsolation::Apart,
        }
    }

    /// As whom the rank runs; nothing if all run as the worker itself.
    pub(crate) fn account(&self, rank: &RankStart) -> Result<Option<AccountChoice>, AccountError> {
        self.0.accounts.of(rank)
    }

    /// What holds the rank to what its job claims, where anything does.
    pub(crate) fn cgroup(&self, rank: &RankStart) -> Option<RankCgroup> {
        self.0.cgroups.as_ref().ok().map(|cgroups| cgroups.of(rank.rank, &rank.spec.demand))
    }

    fn log(&self) {
        match self.users() {
            UserIsolation::Apart => tracing::info!("each job runs as the account of its user"),
            UserIsolation::Together => {
                tracing::warn!("this worker is not root: the jobs of all users run as its own account");
            }
        }
        match &self.0.cgroups {
            Ok(_) => tracing::info!("jobs are held to the cores and the memory that they claim"),
            Err(why) => tracing::warn!(why, "cores and memory that jobs claim are not enforced"),
        }
    }
}
