//! The accounts of this host.
//!
//! A look-up reads files or asks a service, so its result is cached for a moment: the ranks of an array start
//! almost at once. That an account does not exist is never cached.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cohabit_host::account::Account;
use nix::unistd::{Gid, User, getgrouplist};

/// How long a result is cached.
const CACHE_TTL: Duration = Duration::from_secs(1);

/// The accounts that were looked up recently.
#[derive(Debug, Default)]
pub(super) struct AccountCache(Mutex<BTreeMap<String, (Instant, Account)>>);

impl AccountCache {
    /// The account of this name, if there is one.
    pub(super) fn of(&self, name: &str) -> nix::Result<Option<Account>> {
        if let Some((_, account)) = self.fresh().get(name) {
            return Ok(Some(account.clone()));
        }
        // The service may take long, so the lock is not held meanwhile.
        let found_at = Instant::now();
        let found = User::from_name(name)?.map(account).transpose()?;
        self.fresh().extend(found.clone().map(|account| (name.to_owned(), (found_at, account))));
        Ok(found)
    }

    fn fresh(&self) -> MutexGuard<'_, BTreeMap<String, (Instant, Account)>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, (found_at, _)| found_at.elapsed() < CACHE_TTL);
        known
    }
}

fn account(user: User) -> nix::Result<Account> {
    let name = CString::new(user.name.as_str()).map_err(|_nul| nix::Error::EINVAL)?;
    let groups = getgrouplist(&name, user.gid)?;
    Ok(Account {
        name: user.name,
        uid: user.uid.as_raw(),
        gid: user.gid.as_raw(),
        groups: groups.into_iter().map(Gid::as_raw).collect(),
        home: user.dir,
        shell: user.shell,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn found_accounts_are_cached_briefly_and_missing_ones_are_not() {
        let known = AccountCache::default();
        let nobody = known.of("nobody").unwrap().unwrap();
        let remembered = |known: &AccountCache| known.0.lock().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(known.of("no-such-user").unwrap(), None);
        assert_eq!(remembered(&known), ["nobody"]);
        // Whoever it is by now, the system is asked again.
        let stale = Account { uid: nobody.uid + 1, ..nobody.clone() };
        let long_ago = Instant::now().checked_sub(CACHE_TTL).unwrap();
        known.0.lock().unwrap().insert("nobody".into(), (long_ago, stale.clone()));
        assert_eq!(known.of("nobody").unwrap(), Some(nobody));
        known.0.lock().unwrap().insert("nobody".into(), (Instant::now(), stale.clone()));
        assert_eq!(known.of("nobody").unwrap(), Some(stale));
    }
}
