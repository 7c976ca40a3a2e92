//! The name of the account that this process runs as.

use nix::unistd::{User, geteuid};

/// The account of whoever has no name here, or one that no token can have: a head gives its first admin token
/// this name then, and both may well run in one process.
const UNNAMED: &str = "admin";

/// The name of this process's account, as tokens write it.
pub(super) fn own_account() -> String {
    let user = User::from_uid(geteuid()).ok().flatten();
    let fits = |name: &String| name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.@".contains(c));
    user.map(|user| user.name).filter(fits).unwrap_or_else(|| UNNAMED.to_owned())
}
