//! Users for those who have no account on this machine: a number for each name, kept for as long as the state
//! folder.
//!
//! The numbers come from the range that systemd keeps for users without an account, so that no account of
//! people has one of them. A number is never given to another name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use nix::unistd::{Gid, Group, Uid, User};

use super::{Account, AccountError};
use crate::files::{FileError, read_json, write_json};

/// The numbers that systemd gives to dynamic users.
const RANGE: std::ops::RangeInclusive<u32> = 61_184..=65_519;

/// Who has which number.
#[derive(Debug)]
pub(super) struct PrivateUsers {
    path: PathBuf,
    uids: Mutex<BTreeMap<String, u32>>,
}

impl PrivateUsers {
    /// As they are known in this state folder.
    pub(super) fn open(state: &Path) -> Result<PrivateUsers, FileError> {
        let path = state.join("private-users.json");
        let uids = read_json(&path)?.unwrap_or_default();
        Ok(PrivateUsers { path, uids: Mutex::new(uids) })
    }

    /// The user that stands for this name: no groups, no home, no password.
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

    /// A new number counts only once it is written down.
    fn uid_of(&self, name: &str) -> Result<u32, AccountError> {
        let mut uids = self.uids.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(uid) = uids.get(name) {
            return Ok(*uid);
        }
        let is_free = |uid: &u32| !uids.values().any(|given| given == uid) && is_unknown(*uid);
        let uid = RANGE.into_iter().find(is_free).ok_or_else(|| AccountError::NoneLeft(name.to_owned()))?;
        let mut more = uids.clone();
        more.insert(name.to_owned(), uid);
        write_json(&self.path, &more)?;
        *uids = more;
        Ok(uid)
    }
}

/// Whether the machine knows neither a user nor a group of this number.
fn is_unknown(id: u32) -> bool {
    matches!(User::from_uid(Uid::from_raw(id)), Ok(None))
        && matches!(Group::from_gid(Gid::from_raw(id)), Ok(None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_number_over_restarts_and_no_other_gets_it() {
        let folder = tempfile::tempdir().unwrap();
        let uid = |name: &str| PrivateUsers::open(folder.path()).unwrap().of(name).unwrap().uid;
        let (ada, bea) = (uid("ada"), uid("bea"));
        assert_ne!(ada, bea);
        assert_eq!((uid("bea"), uid("ada")), (bea, ada));
        assert!(RANGE.contains(&ada) && RANGE.contains(&bea));
    }

    #[test]
    fn when_all_are_given_that_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let all: BTreeMap<String, u32> = RANGE.map(|uid| (format!("user-{uid}"), uid)).collect();
        write_json(&folder.path().join("private-users.json"), &all).unwrap();
        let users = PrivateUsers::open(folder.path()).unwrap();
        assert!(matches!(users.of("one-more"), Err(AccountError::NoneLeft(_))));
        assert_eq!(users.of("user-61184").unwrap().uid, 61_184);
    }
}
