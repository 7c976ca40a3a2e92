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
    /// How long it is good for; as long as the head's setting says without it, and for ever with
    /// [`NewToken::FOREVER`].
    pub expires_in: Option<Span>,
}

impl NewToken {
    /// The lifetime of a token that does not expire.
    pub const FOREVER: Span = Span::from_micros(u64::MAX);
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
    /// The account as which its jobs run; nothing for those of workers and viewers, which submit none.
    #[must_use]
    pub fn runs_as(&self) -> Option<&str> {
        match self.role {
            Role::Worker | Role::Viewer => None,
            Role::User | Role::Admin => Some(self.account.as_ref().unwrap_or(&self.name)),
        }
    }
}

impl TokenRecord {
    /// How long before its end people are warned.
    pub const WARNING: Span = Span::from_secs(30 * 86_400);

    /// How long it is still good for, if it ends within the time of the warning: zero once it has expired.
    #[must_use]
    pub fn ends_soon(&self, now: Time) -> Option<Span> {
        let left = self.expires_at?.since(now);
        (left <= TokenRecord::WARNING).then_some(left)
    }
}

impl fmt::Debug for IssuedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IssuedToken(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_ends_soon_in_its_last_month() {
        let now = Time::EPOCH + Span::from_secs(1_000_000_000);
        let ends_soon = |expires_at| {
            let (name, created_at) = ("ada".to_owned(), Time::EPOCH);
            TokenRecord { name, role: Role::User, account: None, node: None, created_at, expires_at }
                .ends_soon(now)
        };
        let day = Span::from_secs(86_400);
        assert_eq!(ends_soon(None), None);
        assert_eq!(ends_soon(Some(now + TokenRecord::WARNING + day)), None);
        assert_eq!(ends_soon(Some(now + day)), Some(day));
        assert_eq!(ends_soon(Some(Time::EPOCH)), Some(Span::ZERO));
    }
}
