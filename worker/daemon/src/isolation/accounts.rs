//! Which account a rank runs as.
//!
//! A worker with all rights runs each job as the account of its user, so that the system itself keeps users
//! apart; any other worker has but its own. An account that has all rights is for admins, who have them in
//! the cluster anyway, and only if the operator of the worker does not mind
//! (`docs/decisions/017-jobs-run-as-the-account-of-their-user.md`).

use std::path::{Path, PathBuf};

use cohabit_types::Role;
use cohabit_worker_core::RankStart;
use nix::unistd::geteuid;

use super::Account;
use super::account_cache::AccountCache;
use super::private_users::PrivateUsers;
use crate::files::FileError;

/// The account that has all rights.
const ROOT: u32 = 0;

/// Whether a worker with all rights runs the jobs of admins with all rights.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum RootJobs {
    /// It does, if root is the account of the admin's token.
    #[default]
    OfAdmins,
    /// It does not.
    Never,
}

/// As whom this worker runs ranks.
#[derive(Debug)]
pub(super) enum AccountPolicy {
    /// As itself.
    Own,
    /// As the account of each user.
    OfUsers { root_jobs: RootJobs, known: AccountCache, private: PrivateUsers },
}

/// As whom a rank runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AccountChoice {
    pub(crate) account: Account,
    /// Whether it was made up, because there is none of that name.
    pub(crate) is_private: bool,
}

/// Why a rank cannot run as the account of its user; in words for that user.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AccountError {
    #[error(
        "its account '{0}' has all rights on the worker, and only an admin's job may have them: ask an admin for \
         a token with another --account"
    )]
    NotAdmin(String),
    #[error(
        "its account '{0}' has all rights, and this worker runs no jobs with them (--no-root-jobs): use a token \
         with another --account"
    )]
    NoRootJobs(String),
    #[error("the worker cannot look up the account '{0}': {1}")]
    LookUp(String, nix::Error),
    #[error("the worker has no user left to give to '{0}', which has no account there: make one")]
    NoneLeft(String),
    #[error(
        "the folder '{}' holds checkpoints of another user (number {owner}): move it away", folder.display()
    )]
    CheckpointsOfAnother { folder: PathBuf, owner: u32 },
    #[error(transparent)]
    File(#[from] FileError),
}

impl AccountPolicy {
    /// What this process may do decides.
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

    /// As whom the rank runs; nothing if as this process itself.
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
    fn a_worker_without_rights_runs_all_as_itself() {
        assert_eq!(AccountPolicy::Own.of(&rank("root", Role::User)).unwrap(), None);
    }

    #[test]
    fn an_account_of_the_machine_is_taken_with_its_home_and_groups() {
        let (_folder, accounts) = of_users(RootJobs::default());
        let nobody = User::from_name("nobody").unwrap().unwrap();
        let chosen = accounts.of(&rank("nobody", Role::User)).unwrap().unwrap();
        assert_eq!((chosen.account.uid, chosen.account.home), (nobody.uid.as_raw(), nobody.dir));
        assert!(chosen.account.groups.contains(&nobody.gid.as_raw()) && !chosen.is_private);
    }

    #[test]
    fn an_unknown_user_becomes_one_that_nobody_else_is() {
        let (_folder, accounts) = of_users(RootJobs::default());
        let of = |name| accounts.of(&rank(name, Role::User)).unwrap().unwrap();
        let (one, two) = (of("no-such-user-1"), of("no-such-user-2"));
        assert!(one.is_private && two.is_private && one.account.uid != two.account.uid);
        assert_eq!(one.account.groups, [one.account.gid]);
    }

    #[test]
    fn all_rights_are_for_admins_where_the_worker_does_not_mind() {
        let refusal = |role, root_jobs| {
            let (_folder, accounts) = of_users(root_jobs);
            accounts.of(&rank("root", role)).map_err(|error| error.to_string())
        };
        assert_eq!(refusal(Role::Admin, RootJobs::OfAdmins).unwrap().unwrap().account.uid, 0);
        assert!(refusal(Role::User, RootJobs::OfAdmins).unwrap_err().contains("only an admin's job"));
        assert!(refusal(Role::Admin, RootJobs::Never).unwrap_err().contains("--no-root-jobs"));
    }
}
