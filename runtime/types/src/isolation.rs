//! What a worker keeps apart on its machine: users from each other, and jobs from what others have claimed.

use serde::{Deserialize, Serialize};

use crate::Enforcement;

/// What a worker keeps apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Isolation {
    /// Whether jobs of different users run as different accounts.
    pub users: UserIsolation,
    /// Whether a job gets no more cores and host memory than it claims.
    pub host_limits: Enforcement,
}

/// As whom a worker runs jobs.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UserIsolation {
    /// All as the worker's own account: they reach each other's files and processes.
    #[default]
    Together,
    /// Each as the account of its user, or as a user of its own where there is no such account.
    Apart,
}

/// What is taken of a worker that does not say.
impl Default for Isolation {
    fn default() -> Isolation {
        let unknown = "its worker does not say whether they are".to_owned();
        Isolation { users: UserIsolation::default(), host_limits: Enforcement::Unenforced(unknown) }
    }
}
