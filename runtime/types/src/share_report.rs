//! What everybody holds, used and is entitled to, for people and screens.

use serde::{Deserialize, Serialize};

use crate::ShareTable;

/// The shares of the cluster at one moment. Amounts are in thousandths of a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShareReport {
    /// Whether users take turns; without, the policy orders the jobs of all together.
    pub is_on: bool,
    /// The table.
    pub table: ShareTable,
    /// What is divided.
    pub capacity: u64,
    /// Those who hold or want something, and all projects of the table; whose turn is next comes first.
    pub projects: Vec<ProjectShare>,
}

/// The share of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectShare {
    /// Its name; of a user who is in no project, that of the user.
    pub name: String,
    /// What it gets before others get anything.
    pub guaranteed: u64,
    /// Its share.
    pub share: PartyShare,
    /// Its users who hold or want something; whose turn is next comes first. One for a user who is in no
    /// project.
    pub users: Vec<UserShare>,
}

/// The share of a user within their project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserShare {
    /// The user.
    pub user: String,
    /// Their share.
    pub share: PartyShare,
}

/// What a project or a user holds, waits for, used, and is entitled to.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartyShare {
    /// What it keeps from others.
    pub held: u64,
    /// What its jobs that wait would hold.
    pub waiting: u64,
    /// What it may hold before others go first.
    pub entitled: u64,
    /// Its weight, in thousandths.
    pub weight: u64,
    /// What counts of the weight because of what it used, in thousandths.
    pub factor: u64,
    /// What it used, in thousandths of a GPU times seconds: what is older counts less.
    pub used: u64,
    /// That as a part of what all used who hold or want something, in thousandths.
    pub used_part: u64,
}
