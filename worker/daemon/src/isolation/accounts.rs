//! Chooses the account that a rank runs as.
//!
//! A worker that runs as root runs each job as the account of its user, so that the operating system isolates
//! users from each other; any other worker runs all jobs as its own account. Jobs run as root only for
//! admins, and only if the operator of the worker allows it
//! (`docs/decisions/017-jobs-run-as-the-account-of-their-user.md`).

use std::path::Path;

use cohabit_host::account::Account;
use cohabit_host::files::FileError;
use cohabit_types::Role;
use cohabit_worker_core::RankStart;
use nix::unistd::geteuid;

use super::account_cache::AccountCache;
use super::error::AccountError;
use super::private_users::PrivateUsers;

/// The user id of root.
const ROOT: u32 = 0;

/// Whether a worker that runs as root runs jobs as root.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum RootJobs {
    /// Jobs of admins whose token names the account root.
    #[default]
    OfAdmins,
    /// No jobs.
    Never,
}

/// Which accounts this worker uses.
#[derive(Debug)]
pub(super) enum AccountPolicy {
    /// Its own for all ranks.
    Own,
    /// The account of each user.
    OfUsers { root_jobs: RootJobs, known: AccountCache, private: PrivateUsers },
}

/// The account of a rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AccountChoice {
    pub(crate) account: Account,
    /// Whether the user has no account, and only got a user id.
    pub(crate) is_private: bool,
}

impl AccountPolicy {
    /// Depends on whether this process is root.
    pub(super) fn of_this_worker(state: &Path, root_jobs: RootJobs) -> Result<AccountPolicy, FileError> {
        Ok(match geteuid().is_root() {
            true => AccountPolicy::OfUsers {
                root_jobs,
                known: AccountCache::default(),
                private: PrivateUsers::open(state)?,
            },
            false => AccountPolicy::Own,
        })
    }

    /// The account of the rank; `None` if it runs as this process does.
    pub(super) fn of(&self, rank: &RankStart) -> Result<Option<AccountChoice>, AccountError> {
        let AccountPolicy::OfUsers { root_jobs, known, private } = self else { return Ok(None) };
        let name = &rank.account;
        let found = known.of(name).map_err(|errno| AccountError::LookUp(name.clone(), errno))?;
        let Some(account) = found else {
            return Ok(Some(AccountChoice { account: private.of(name)?, is_private: true }));
        };
        if account.uid == ROOT {
            allow_root(name, rank.role, *root_jobs)?;
        }
        Ok(Some(AccountChoice { account, is_private: false }))
    }
}

fn allow_root(name: &str, role: Role, root_jobs: RootJobs) -> Result<(), AccountError> {
    match (role, root_jobs) {
        (Role::Admin, RootJobs::OfAdmins) => Ok(()),
        (Role::Admin, RootJobs::Never) => Err(AccountError::NoRootJobs(name.to_owned())),
        (Role::User | Role::Worker, _) => Err(AccountError::NotAdmin(name.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use cohabit_types::{JobId, JobSpec, Share};
    use cohabit_worker_core::GpuAccess;
    use nix::unistd::User;

    use super::*;

    fn rank(account: &str, role: Role) -> RankStart {
        RankStart {
            rank: JobId::new(1).attempt(1).rank(0),
            spec: JobSpec::command(vec!["true".into()], "/".into()).into(),
            user: "ada".into(),
            account: account.into(),
            role,
            private_uid: None,
            devices: Vec::new(),
            share: Share::WHOLE,
            access: GpuAccess::None,
            rendezvous_port: None,
            environment: [].into(),
        }
    }

    fn of_users(root_jobs: RootJobs) -> (tempfile::TempDir, AccountPolicy) {
        let folder = tempfile::tempdir().unwrap();
        let private = PrivateUsers::open(folder.path()).unwrap();
        (folder, AccountPolicy::OfUsers { root_jobs, known: AccountCache::default(), private })
    }

    #[test]
    fn a_worker_that_is_not_root_runs_all_jobs_as_itself() {
        assert_eq!(AccountPolicy::Own.of(&rank("root", Role::User)).unwrap(), None);
    }

    #[test]
    fn an_existing_account_is_used_with_its_home_and_groups() {
        let (_folder, accounts) = of_users(RootJobs::default());
        let nobody = User::from_name("nobody").unwrap().unwrap();
        let chosen = accounts.of(&rank("nobody", Role::User)).unwrap().unwrap();
        assert_eq!((chosen.account.uid, chosen.account.home), (nobody.uid.as_raw(), nobody.dir));
        assert!(chosen.account.groups.contains(&nobody.gid.as_raw()) && !chosen.is_private);
    }

    #[test]
    fn an_unknown_user_gets_a_user_id_of_its_own() {
        let (_folder, accounts) = of_users(RootJobs::default());
        let of = |name| accounts.of(&rank(name, Role::User)).unwrap().unwrap();
        let (one, two) = (of("no-such-user-1"), of("no-such-user-2"));
        assert!(one.is_private && two.is_private && one.account.uid != two.account.uid);
        assert_eq!(one.account.groups, [one.account.gid]);
    }

    #[test]
    fn only_admins_run_jobs_as_root_and_only_where_the_worker_allows_it() {
        let refusal = |role, root_jobs| {
            let (_folder, accounts) = of_users(root_jobs);
            accounts.of(&rank("root", role)).map_err(|error| error.to_string())
        };
        assert_eq!(refusal(Role::Admin, RootJobs::OfAdmins).unwrap().unwrap().account.uid, 0);
        assert!(refusal(Role::User, RootJobs::OfAdmins).unwrap_err().contains("only jobs of admins"));
        assert!(refusal(Role::Admin, RootJobs::Never).unwrap_err().contains("--no-root-jobs"));
    }
}
