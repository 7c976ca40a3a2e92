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
    /// The last part of the cluster, in thousandths of it, which is lent only to jobs that can be given back
    /// in time: see [`crate::JobSpec::can_be_given_back`].
    #[serde(default)]
    pub open_part: u32,
    /// For so long a job runs at least before what it holds is reclaimed for others.
    #[serde(default = "usual_keep_for")]
    pub keep_for: Span,
    /// What each user may have at most.
    #[serde(default)]
    pub user: UserLimits,
}

/// What each user may have at most; admins are not limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserLimits {
    /// What their jobs that run hold and use.
    #[serde(default)]
    pub running: RunningLimits,
    /// Jobs that wait, members of arrays one by one.
    #[serde(default)]
    pub queued_jobs: Option<u64>,
    /// Submissions in a minute.
    #[serde(default)]
    pub submits_per_minute: Option<u32>,
    /// What jobs of high quality of service may hold in a week, in hours of a GPU.
    #[serde(default = "usual_high_hours")]
    pub high_gpu_hours: u32,
}

/// What the jobs that run may have at most.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningLimits {
    /// What they hold together, in thousandths of a GPU.
    #[serde(default)]
    pub gpus: Option<u64>,
    /// How many there are.
    #[serde(default)]
    pub jobs: Option<u64>,
}

impl Default for UserLimits {
    fn default() -> UserLimits {
        UserLimits {
            running: RunningLimits::default(),
            queued_jobs: None,
            submits_per_minute: None,
            high_gpu_hours: usual_high_hours(),
        }
    }
}

impl RunningLimits {
    /// Whether nothing is limited.
    #[must_use]
    pub fn is_unlimited(self) -> bool {
        self == RunningLimits::default()
    }
}

const fn usual_keep_for() -> Span {
    Span::from_secs(3_600)
}

const fn usual_high_hours() -> u32 {
    24
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
    /// What all of them may have at most together.
    #[serde(default)]
    pub running: RunningLimits,
}

impl Default for ShareProject {
    /// Of weight 1, with nobody in it.
    fn default() -> ShareProject {
        ShareProject {
            weight: 1_000,
            guaranteed: 0,
            users: BTreeSet::new(),
            running: RunningLimits::default(),
        }
    }
}

impl Default for ShareTable {
    /// Everybody is a project of one, and use counts half after a week.
    fn default() -> ShareTable {
        let half_life = Span::from_secs(7 * 86_400);
        ShareTable {
            half_life,
            prices: BTreeMap::new(),
            projects: BTreeMap::new(),
            open_part: 0,
            keep_for: usual_keep_for(),
            user: UserLimits::default(),
        }
    }
}

impl ShareTable {
    /// What a GPU of this model counts, in thousandths.
    #[must_use]
    pub fn price(&self, model: &str) -> u32 {
        self.prices.get(model).copied().unwrap_or(1_000)
    }

    /// Whether anything is lent only to jobs that can be given back in time for others.
    #[must_use]
    pub fn asks_what_is_given_back(&self) -> bool {
        self.open_part > 0 || self.projects.values().any(|it| it.guaranteed > 0)
    }

    /// The project of a user; `None` for a project of one.
    #[must_use]
    pub fn project_of(&self, user: &str) -> Option<&str> {
        self.projects.iter().find(|(_, project)| project.users.contains(user)).map(|(name, _)| name.as_str())
    }
}
