//! The accounts that policies tell apart: those that own nodes, whose workers serve them alone, and all of
//! them where a device serves one user at a time.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use cohabit_types::AccountKey;

/// The accounts that have keys. An account that policies need not tell apart has none, so that equal demands
/// of several such accounts are equal.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct AccountKeys {
    of_nodes: BTreeSet<String>,
    has_device_of_one_user: bool,
}

impl AccountKeys {
    /// What these nodes need: of each, the account that its worker serves alone, and whether a device of it
    /// serves one user at a time.
    pub(crate) fn of<'n>(nodes: impl Iterator<Item = (Option<&'n str>, bool)>) -> AccountKeys {
        let mut keys = AccountKeys::default();
        for (account, has_device_of_one_user) in nodes {
            keys.of_nodes.extend(account.map(str::to_owned));
            keys.has_device_of_one_user |= has_device_of_one_user;
        }
        keys
    }

    pub(crate) fn key(&self, account: &str) -> Option<AccountKey> {
        let is_told_apart = self.has_device_of_one_user || self.of_nodes.contains(account);
        is_told_apart.then(|| key_of(account))
    }
}

/// Not stored, so it need not be the same in another build.
fn key_of(account: &str) -> AccountKey {
    let mut hasher = DefaultHasher::new();
    account.hash(&mut hasher);
    AccountKey(hasher.finish())
}
