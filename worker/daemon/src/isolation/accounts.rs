//! Chooses the account that a rank runs as.
//!
//! A worker that runs as root runs each job as the account of its user, so that the operating system isolates
//! users from each other. Jobs run as root only for admins, and only if the operator of the worker allows it
//! (`docs/decisions/017-jobs-run-as-the-account-of-their-user.md`). No job runs as an account of the system.
//!
//! Any other worker can run jobs only as its own account, so it serves that account alone, unless its
//! operator lets all users share it
//! (`docs/decisions/032-a-worker-that-is-not-root-serves-one-user.md`).

use std::path::Path;

use cohabit_host::account::Account;
use cohabit_host::files::FileError;
use cohabit_types::Role;
use nix::unistd::geteuid;

use super::account_cache::AccountCache;
use super::error::AccountError;
use super::own_account::own_account;
use super::private_users::{self, PrivateUsers};

/// The user id of root.
const ROOT: u32 = 0;

/// The user id of nobody: files that belong to no account known here show it as their owner.
const NOBODY: u32 = 65_534;

/// The first user id that systems give to people.
const FIRST_OF_PEOPLE: u32 = 1_000;

/// As which accounts a worker runs jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountOptions {
    /// Whether it runs jobs as root, if it runs as root itself.
    pub root_jobs: RootJobs,
    /// The least user id as which it runs jobs; those below belong to the system.
    pub min_uid: u32,
    /// Whether all users share its own account, if it does not run as root.
    pub own_account: OwnAccount,
}

impl Default for AccountOptions {
    fn default() -> AccountOptions {
        AccountOptions {
            root_jobs: RootJobs::default(),
            min_uid: FIRST_OF_PEOPLE,
            own_account: OwnAccount::default(),
        }
    }
}

/// Whether a worker that runs as root runs jobs as root.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum RootJobs {
    /// Jobs of admins whose token names the account root.
    #[default]
    OfAdmins,
    /// No jobs.
    Never,
}

/// Whose jobs run as the account of a worker that is not root.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum OwnAccount {
    /// Those of the user whose account it is.
    #[default]
    OfItsUser,
    /// Those of all users, who can then reach each other's files and the worker's.
    Shared,
}

/// Which accounts this worker uses.
#[derive(Debug)]
pub(super) enum AccountPolicy {
    /// Its own for all ranks.
    Shared,
    /// Its own, of this name, for the ranks of that account; it runs no others.
    One(String),
    /// The account of each user.
    OfUsers { options: AccountOptions, known: AccountCache, private: PrivateUsers },
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
    pub(super) fn of_this_worker(state: &Path, options: AccountOptions) -> Result<AccountPolicy, FileError> {
        if geteuid().is_root() {
            let private = PrivateUsers::open(state)?;
            return Ok(AccountPolicy::OfUsers { options, known: AccountCache::default(), private });
        }
        Ok(match options.own_account {
            OwnAccount::OfItsUser => AccountPolicy::One(own_account()),
            OwnAccount::Shared => AccountPolicy::Shared,
        })
    }

    /// The account of this name for a user with this role; `None` if that is the one of this process.
    pub(super) fn of(&self, name: &str, role: Role) -> Result<Option<AccountChoice>, AccountError> {
        let (options, known, private) = match self {
            AccountPolicy::Shared => return Ok(None),
            AccountPolicy::One(own) if own == name => return Ok(None),
            AccountPolicy::One(own) => {
                return Err(AccountError::Other { own: own.clone(), name: name.to_owned() });
            }
            AccountPolicy::OfUsers { options, known, private } => (options, known, private),
        };
        let chosen = choose(known, private, name)?;
        match chosen.account.uid {
            _ if chosen.is_private => {}
            ROOT => allow_root(name, role, options.root_jobs)?,
            uid if is_of_system(uid, options.min_uid) => {
                return Err(AccountError::OfSystem { name: name.to_owned(), uid, min_uid: options.min_uid });
            }
            _ => {}
        }
        Ok(Some(chosen))
    }

    /// The user id of ranks of this account, whether or not it may have any here.
    pub(super) fn user_of(&self, account: &str) -> Result<u32, AccountError> {
        match self {
            AccountPolicy::Shared | AccountPolicy::One(_) => Ok(geteuid().as_raw()),
            AccountPolicy::OfUsers { options: _, known, private } => {
                Ok(choose(known, private, account)?.account.uid)
            }
        }
    }
}

/// The account of this name; where this host has none, a private user.
fn choose(known: &AccountCache, private: &PrivateUsers, name: &str) -> Result<AccountChoice, AccountError> {
    let found = known.of(name).map_err(|errno| AccountError::LookUp(name.to_owned(), errno))?;
    Ok(match found {
        Some(account) => AccountChoice { account, is_private: false },
        None => AccountChoice { account: private.of(name)?, is_private: true },
    })
}

fn allow_root(name: &str, role: Role, root_jobs: RootJobs) -> Result<(), AccountError> {
    match (role, root_jobs) {
        (Role::Admin, RootJobs::OfAdmins) => Ok(()),
        (Role::Admin, RootJobs::Never) => Err(AccountError::NoRootJobs(name.to_owned())),
        (Role::User | Role::Worker | Role::Viewer, _) => Err(AccountError::NotAdmin(name.to_owned())),
    }
}

/// Whether the account belongs to the system or to one of its services. Named accounts in the range of
/// private users are services to which systemd gave an id while they run.
fn is_of_system(uid: u32, min_uid: u32) -> bool {
    uid < min_uid || uid == NOBODY || private_users::RANGE.contains(&uid)
}

#[cfg(test)]
mod tests {
    use cohabit_types::StartFailure;
    use nix::unistd::User;

    use super::*;

    fn of_users(options: AccountOptions) -> (tempfile::TempDir, AccountPolicy) {
        let folder = tempfile::tempdir().unwrap();
        let private = PrivateUsers::open(folder.path()).unwrap();
        (folder, AccountPolicy::OfUsers { options, known: AccountCache::default(), private })
    }

    /// A worker that runs jobs as accounts of the system, of which every machine has some.
    fn with_min_uid(min_uid: u32) -> (tempfile::TempDir, AccountPolicy) {
        of_users(AccountOptions { min_uid, ..AccountOptions::default() })
    }

    #[test]
    fn a_worker_that_is_not_root_runs_only_jobs_of_its_own_account() {
        let own = AccountPolicy::One("ada".into());
        assert_eq!(own.of("ada", Role::User).unwrap(), None);
        for role in [Role::User, Role::Admin] {
            let refused = own.of("bea", role).unwrap_err();
            let why = refused.to_string();
            assert!(
                why.contains("serves only the account 'ada'") && why.contains("--allow-shared-account"),
                "{why}"
            );
            assert!(matches!(refused.failure(), StartFailure::NodeProblem(_)));
        }
    }

    #[test]
    fn all_users_share_the_account_of_a_worker_only_where_its_operator_allows_it() {
        assert_eq!(AccountPolicy::Shared.of("bea", Role::User).unwrap(), None);
        assert_eq!(AccountOptions::default().own_account, OwnAccount::OfItsUser);
    }

    #[test]
    fn an_existing_account_is_used_with_its_home_and_groups() {
        let (_folder, accounts) = with_min_uid(1);
        let daemon = User::from_name("daemon").unwrap().unwrap();
        let chosen = accounts.of("daemon", Role::User).unwrap().unwrap();
        assert_eq!((chosen.account.uid, chosen.account.home), (daemon.uid.as_raw(), daemon.dir));
        assert!(chosen.account.groups.contains(&daemon.gid.as_raw()) && !chosen.is_private);
    }

    #[test]
    fn no_job_runs_as_an_account_of_the_system_unless_the_worker_allows_it() {
        let refusal = |min_uid, name, role| {
            let (_folder, accounts) = with_min_uid(min_uid);
            accounts.of(name, role).map(|_| ()).map_err(|error| error.to_string())
        };
        for role in [Role::User, Role::Admin] {
            let why = refusal(1_000, "daemon", role).unwrap_err();
            assert!(
                why.contains("'daemon' (user id 1) belongs to the system") && why.contains("--min-uid"),
                "{why}"
            );
            assert_eq!(refusal(1, "daemon", role), Ok(()));
            assert!(refusal(1, "nobody", role).is_err());
        }
        assert_eq!(refusal(70_000, "no-such-user", Role::User), Ok(()), "it gets a private user id");
    }

    #[test]
    fn user_ids_of_the_system_are_those_below_the_least_nobodys_and_those_of_services() {
        for (uid, is_systems) in [
            (999, true),
            (1_000, false),
            (61_183, false),
            (61_184, true),
            (65_519, true),
            (65_534, true),
            (70_000, false),
        ] {
            assert_eq!(is_of_system(uid, FIRST_OF_PEOPLE), is_systems, "{uid}");
        }
    }

    #[test]
    fn an_unknown_user_gets_a_user_id_of_its_own() {
        let (_folder, accounts) = of_users(AccountOptions::default());
        let of = |name| accounts.of(name, Role::User).unwrap().unwrap();
        let (one, two) = (of("no-such-user-1"), of("no-such-user-2"));
        assert!(one.is_private && two.is_private && one.account.uid != two.account.uid);
        assert_eq!(one.account.groups, [one.account.gid]);
        assert_eq!(accounts.user_of("no-such-user-1").unwrap(), one.account.uid);
    }

    #[test]
    fn only_admins_run_jobs_as_root_and_only_where_the_worker_allows_it() {
        let refusal = |role, root_jobs| {
            let (_folder, accounts) = of_users(AccountOptions { root_jobs, ..AccountOptions::default() });
            accounts.of("root", role).map_err(|error| error.to_string())
        };
        assert_eq!(refusal(Role::Admin, RootJobs::OfAdmins).unwrap().unwrap().account.uid, 0);
        assert!(refusal(Role::User, RootJobs::OfAdmins).unwrap_err().contains("only jobs of admins"));
        assert!(refusal(Role::Admin, RootJobs::Never).unwrap_err().contains("--no-root-jobs"));
    }
}
