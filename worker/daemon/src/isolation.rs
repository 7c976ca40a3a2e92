//! How this worker isolates jobs: different users by accounts, cores, memory and device files of different
//! jobs by cgroups.
//!
//! Both are detected once, when the daemon starts, and neither is assumed: the head and all its screens show
//! what is not isolated.
//!
//! ```text
//! order -> daemon: Isolator::account, ::cgroup -> start.json -> executor: Account::run_as, RankCgroup::open
//! ```

mod account_cache;
mod accounts;
mod error;
mod own_account;
mod private_users;

use std::sync::Arc;

use cohabit_gpu::GpuDeviceFiles;
use cohabit_host::cgroup::{Cgroups, RankCgroup};
use cohabit_host::files::FileError;
use cohabit_types::{Enforcement, Isolation, Role, UserIsolation};
use cohabit_worker_core::RankStart;

pub(crate) use accounts::AccountChoice;
pub use accounts::{AccountOptions, OwnAccount, RootJobs};
pub(crate) use error::AccountError;

use crate::state_directory::StateDirectory;
use accounts::AccountPolicy;

/// How this worker isolates jobs; clones share their state.
#[derive(Debug, Clone)]
pub(crate) struct Isolator(Arc<IsolationState>);

#[derive(Debug)]
struct IsolationState {
    accounts: AccountPolicy,
    /// Or why cgroups cannot be used.
    cgroups: Result<Cgroups, String>,
    /// Or why the driver does not tell them.
    gpu_files: Result<GpuDeviceFiles, String>,
}

impl Isolator {
    /// Detects how jobs can be isolated, and prepares it: a worker that runs as root lets users pass through
    /// its state directory; one with a delegated cgroup moves itself to a leaf of it. Blocks.
    ///
    /// # Errors
    /// When the state directory cannot be used.
    pub(crate) fn establish(
        state: &StateDirectory,
        options: AccountOptions,
        gpu_files: Result<GpuDeviceFiles, String>,
    ) -> Result<Isolator, FileError> {
        let accounts = AccountPolicy::of_this_worker(state.root(), options)?;
        let cgroups = Cgroups::claim();
        let isolation = Isolator(Arc::new(IsolationState { accounts, cgroups, gpu_files }));
        isolation.log();
        match isolation.users() {
            UserIsolation::Apart => state.allow_traversal_of_state()?,
            UserIsolation::Together | UserIsolation::OneAccount(_) => {}
        }
        Ok(isolation)
    }

    /// No isolation.
    #[cfg(test)]
    pub(crate) fn none() -> Isolator {
        Isolator(Arc::new(IsolationState {
            accounts: AccountPolicy::Shared,
            cgroups: Err("not looked for".into()),
            gpu_files: Ok(GpuDeviceFiles::default()),
        }))
    }

    /// The report to the head.
    pub(crate) fn report(&self) -> Isolation {
        Isolation {
            users: self.users(),
            host_limits: match &self.0.cgroups {
                Ok(_) => Enforcement::Enforced,
                Err(why) => Enforcement::Unenforced(why.clone()),
            },
            devices: match self.device_filter() {
                Ok(()) => Enforcement::Enforced,
                Err(why) => Enforcement::Unenforced(why.to_owned()),
            },
        }
    }

    /// Whether each rank reaches its own GPUs alone, or why not.
    fn device_filter(&self) -> Result<(), &str> {
        self.0.cgroups.as_ref().map_err(String::as_str)?.device_filter()?;
        self.0.gpu_files.as_ref().map(drop).map_err(String::as_str)
    }

    /// Whether each rank reaches the device files of no GPUs but its own.
    pub(crate) fn closes_other_gpus(&self) -> bool {
        self.device_filter().is_ok()
    }

    pub(crate) fn users(&self) -> UserIsolation {
        match &self.0.accounts {
            AccountPolicy::Shared => UserIsolation::Together,
            AccountPolicy::One(account) => UserIsolation::OneAccount(account.clone()),
            AccountPolicy::OfUsers { .. } => UserIsolation::Apart,
        }
    }

    /// The account of the rank; `None` if all ranks run as the worker does.
    pub(crate) fn account(&self, rank: &RankStart) -> Result<Option<AccountChoice>, AccountError> {
        self.account_named(&rank.account, rank.role)
    }

    /// The account of this name, for what a user with this role does; `None` if that is as the worker does
    /// it. Blocks.
    pub(crate) fn account_named(
        &self,
        name: &str,
        role: Role,
    ) -> Result<Option<AccountChoice>, AccountError> {
        self.0.accounts.of(name, role)
    }

    /// The user id of ranks of this account. Blocks.
    pub(crate) fn user_of(&self, account: &str) -> Result<u32, AccountError> {
        self.0.accounts.user_of(account)
    }

    /// The cgroups of ranks, where they can be used.
    pub(crate) fn cgroups(&self) -> Option<&Cgroups> {
        self.0.cgroups.as_ref().ok()
    }

    /// The cgroup that limits the rank to what its job claims, where cgroups can be used.
    pub(crate) fn cgroup(&self, rank: &RankStart) -> Option<RankCgroup> {
        let closed =
            self.0.gpu_files.as_ref().map(|files| files.closed_to(&rank.devices)).unwrap_or_default();
        self.cgroups().map(|cgroups| cgroups.for_rank(rank.rank, &rank.spec.demand, closed))
    }

    fn log(&self) {
        match self.users() {
            UserIsolation::Apart => tracing::info!("each job runs as the account of its user"),
            UserIsolation::OneAccount(account) => {
                tracing::info!(account, "this worker is not root: it runs only jobs of its own account");
            }
            UserIsolation::Together => {
                tracing::warn!(
                    "this worker is not root: jobs of all users run as its own account and can read its secrets"
                );
            }
        }
        match &self.0.cgroups {
            Ok(_) => tracing::info!("jobs are limited to the cores and the memory that they request"),
            Err(why) => tracing::warn!(why, "limits of cores and memory are not enforced"),
        }
        match self.device_filter() {
            Ok(()) => tracing::info!("each job reaches only the GPUs that it was given"),
            Err(why) => tracing::warn!(why, "jobs can open the device files of all GPUs"),
        }
    }
}
