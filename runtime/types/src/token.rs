//! Tokens: who may do what. The secret of a token appears once, in the answer to its creation.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Role, Span, Time};

/// A token to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewToken {
    /// The user's name on jobs; unique among tokens.
    pub name: String,
    /// What it allows.
    pub role: Role,
    /// The account on workers' machines as which its jobs run; the one with the user's name without it.
    pub account: Option<String>,
    /// The one node, by name, that a worker with it may be; any node without it.
    pub node: Option<String>,
    /// How long it is good for; for ever without it.
    pub expires_in: Option<Span>,
}

/// A token that was just made. `Debug` hides it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuedToken {
    /// Its whole text: `cohabit1.<fingerprint>.<secret>`.
    pub text: String,
}

/// A token without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenRecord {
    /// Whose it is.
    pub name: String,
    /// What it allows.
    pub role: Role,
    /// The account as which its jobs run, where it is not named like the token.
    #[serde(default)]
    pub account: Option<String>,
    /// The one node, by name, that a worker with it may be.
    #[serde(default)]
    pub node: Option<String>,
    /// When it was made.
    pub created_at: Time,
    /// When it ceases to be good.
    pub expires_at: Option<Time>,
}

impl TokenRecord {
    /// The account as which its jobs run; nothing for a worker's, which submits none.
    #[must_use]
    pub fn runs_as(&self) -> Option<&str> {
        match self.role {
            Role::Worker => None,
            Role::User | Role::Admin => Some(self.account.as_ref().unwrap_or(&self.name)),
        }
    }
}

impl fmt::Debug for IssuedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IssuedToken(secret)")
    }
}
