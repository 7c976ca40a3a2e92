//! Users and roles, as tokens name them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The user on whose behalf something is asked, as the token says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Principal {
    /// The token's name.
    pub user: String,
    /// The token's role.
    pub role: Role,
    /// The account as which the user's jobs run, where it is not named like the user.
    #[serde(default)]
    pub account: Option<String>,
}

impl Principal {
    /// A user whose jobs run as the account of the same name.
    #[must_use]
    pub fn new(user: impl Into<String>, role: Role) -> Principal {
        Principal { user: user.into(), role, account: None }
    }
}

/// What a token allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Join as a worker; nothing else.
    Worker,
    /// Submit jobs and change one's own.
    User,
    /// Everything.
    Admin,
    /// Look at jobs, nodes and shares: no output, no commands, no changes. The last one: protocol 5 sends the
    /// place of a role in this list.
    Viewer,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Worker => "worker",
            Role::User => "user",
            Role::Admin => "admin",
            Role::Viewer => "viewer",
        })
    }
}
