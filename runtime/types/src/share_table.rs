//! Who has which part of the cluster: the table that an admin applies as a whole.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::Span;

/// The table of fair share. A user who is in no project is a project of one, of weight 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShareTable {
    /// In which time what somebody used counts half as much.
    pub half_life: Span,
    /// What a GPU of a model counts, in thousandths of the most valuable one. Other models count 1,000.
    #[serde(default)]
    pub prices: BTreeMap<String, u32>,
    /// The projects by name.
    #[serde(default)]
    pub projects: BTreeMap<String, ShareProject>,
}

/// Users who have a part of the cluster together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShareProject {
    /// Its weight, in thousandths.
    pub weight: u32,
    /// What it gets before others get anything, in thousandths of a GPU.
    #[serde(default)]
    pub guaranteed: u64,
    /// Who belongs to it. Nobody belongs to two projects.
    pub users: BTreeSet<String>,
}

impl Default for ShareTable {
    /// Everybody is a project of one, and use counts half after a week.
    fn default() -> ShareTable {
        let half_life = Span::from_secs(7 * 86_400);
        ShareTable { half_life, prices: BTreeMap::new(), projects: BTreeMap::new() }
    }
}

impl ShareTable {
    /// What a GPU of this model counts, in thousandths.
    #[must_use]
    pub fn price(&self, model: &str) -> u32 {
        self.prices.get(model).copied().unwrap_or(1_000)
    }

    /// The project of a user; `None` for a project of one.
    #[must_use]
    pub fn project_of(&self, user: &str) -> Option<&str> {
        self.projects.iter().find(|(_, project)| project.users.contains(user)).map(|(name, _)| name.as_str())
    }
}
