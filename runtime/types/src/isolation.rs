//! The isolation that a worker provides: between users, and between a job and the resources that others
//! claim.

use serde::{Deserialize, Serialize};

use crate::Enforcement;

/// The isolation that a worker provides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Isolation {
    /// Whether jobs of different users run as different accounts.
    pub users: UserIsolation,
    /// Whether a job gets no more cores and host memory than it claims.
    pub host_limits: Enforcement,
    /// Whether a job can open the device files of no GPUs but its own.
    pub devices: Enforcement,
}

/// The accounts as which a worker runs jobs.
#[derive(Debug, Default, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UserIsolation {
    /// All as the worker's own account: they reach each other's files and processes.
    #[default]
    Together,
    /// Each as the account of its user, or as a user of its own where there is no such account.
    Apart,
    /// Those of this account alone, which is the worker's own: it runs no others.
    OneAccount(String),
}

/// An account, where policies have to tell accounts apart: a node may serve one alone, and a GPU one at a
/// time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AccountKey(pub u64);

/// The default if a worker reports nothing.
impl Default for Isolation {
    fn default() -> Isolation {
        let unknown = || Enforcement::Unenforced("its worker does not say whether they are".to_owned());
        Isolation { users: UserIsolation::default(), host_limits: unknown(), devices: unknown() }
    }
}
