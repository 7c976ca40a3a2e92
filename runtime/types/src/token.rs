//! Tokens: who may do what. Their secrets appear once, in the answer to their creation.

use serde::{Deserialize, Serialize};

use crate::{Role, Span, Time};

/// What an admin asks about tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TokenRequest {
    /// Make one.
    Create {
        /// Whose it is: the user's name on jobs; unique.
        name: String,
        /// What it allows.
        role: Role,
        /// The account on workers' machines as which its jobs run; the one named like it, where none is said.
        account: Option<String>,
        /// How long it is good for; for ever without it.
        expires_in: Option<Span>,
    },
    /// List all.
    List,
    /// Make this one worthless, at once.
    Revoke(String),
}

/// The answer.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TokenAnswer {
    /// The whole text of the new token: `cohabit1.<fingerprint>.<secret>`.
    Created(String),
    /// All tokens, without secrets.
    Listed(Vec<TokenRecord>),
    /// It is worthless now.
    Revoked,
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

/// Never shows the secret.
impl std::fmt::Debug for TokenAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TokenAnswer::Created(_) => f.write_str("Created(secret)"),
            TokenAnswer::Listed(tokens) => f.debug_tuple("Listed").field(tokens).finish(),
            TokenAnswer::Revoked => f.write_str("Revoked"),
        }
    }
}
