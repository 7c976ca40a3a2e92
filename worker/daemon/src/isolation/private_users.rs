//! User ids for users without an account on this host: one for each name, kept as long as the state
//! directory.
//!
//! The ids come from systemd's range for dynamic users, so that no regular account has one of them. An id is
//! never given to another name.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use cohabit_host::account::Account;
use cohabit_host::files::{FileError, WriteMode};
use cohabit_host::format::{read_versioned, write_versioned};
use nix::unistd::{Gid, Group, Uid, User};

use super::error::AccountError;
use crate::state_files::PrivateUids;

/// The ids that systemd gives to dynamic users.
pub(super) const RANGE: std::ops::RangeInclusive<u32> = 61_184..=65_519;

/// The id of each name.
#[derive(Debug)]
pub(super) struct PrivateUsers {
    path: PathBuf,
    uids: Mutex<PrivateUids>,
}

impl PrivateUsers {
    /// Reads the ids of this state directory.
    pub(super) fn open(state: &Path) -> Result<PrivateUsers, FileError> {
        let path = state.join("private-users.json");
        let uids = read_versioned(&path)?.unwrap_or_default();
        Ok(PrivateUsers { path, uids: Mutex::new(uids) })
    }

    /// The account for this name: without groups, home and password.
    pub(super) fn of(&self, name: &str) -> Result<Account, AccountError> {
        let uid = self.uid_of(name)?;
        Ok(Account {
            name: name.to_owned(),
            uid,
            gid: uid,
            groups: vec![uid],
            home: "/".into(),
            shell: "/bin/sh".into(),
        })
    }

    /// A new id is used only once it is on disk.
    fn uid_of(&self, name: &str) -> Result<u32, AccountError> {
        let mut uids = self.uids.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(uid) = uids.0.get(name) {
            return Ok(*uid);
        }
        let is_free = |uid: &u32| !uids.0.values().any(|given| given == uid) && is_unknown(*uid);
        let uid = RANGE.into_iter().find(is_free).ok_or_else(|| AccountError::NoneLeft(name.to_owned()))?;
        let mut more = uids.clone();
        more.0.insert(name.to_owned(), uid);
        write_versioned(&self.path, &more, WriteMode::Durable)?;
        *uids = more;
        Ok(uid)
    }
}

/// Whether the host has neither a user nor a group with this id.
fn is_unknown(id: u32) -> bool {
    matches!(User::from_uid(Uid::from_raw(id)), Ok(None))
        && matches!(Group::from_gid(Gid::from_raw(id)), Ok(None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_id_over_restarts_and_no_other_gets_it() {
        let folder = tempfile::tempdir().unwrap();
        let uid = |name: &str| PrivateUsers::open(folder.path()).unwrap().of(name).unwrap().uid;
        let (ada, bea) = (uid("ada"), uid("bea"));
        assert_ne!(ada, bea);
        assert_eq!((uid("bea"), uid("ada")), (bea, ada));
        assert!(RANGE.contains(&ada) && RANGE.contains(&bea));
    }

    #[test]
    fn an_exhausted_range_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let all = PrivateUids(RANGE.map(|uid| (format!("user-{uid}"), uid)).collect());
        write_versioned(&folder.path().join("private-users.json"), &all, WriteMode::Durable).unwrap();
        let users = PrivateUsers::open(folder.path()).unwrap();
        assert!(matches!(users.of("one-more"), Err(AccountError::NoneLeft(_))));
        assert_eq!(users.of("user-61184").unwrap().uid, 61_184);
    }
}
