//! What can be changed about a job that waits.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Span, Time};

/// New settings of a job that waits; what is not given stays as it is.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSettings {
    /// Its priority.
    pub priority: Option<i32>,
    /// How long an attempt may run.
    pub time_limit: Option<TimeLimitSetting>,
    /// How many more attempts it gets when it fails.
    pub retries: Option<u32>,
    /// Its earliest start, if it has not run yet.
    pub begin: Option<Time>,
}

/// A new time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeLimitSetting {
    /// None.
    Unlimited,
    /// This one.
    Limit(Span),
}

impl JobSettings {
    /// Whether it has no new setting.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == JobSettings::default()
    }
}

/// `priority 5, time limit 4 h`.
impl fmt::Display for JobSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let JobSettings { priority, time_limit, retries, begin } = self;
        let limit = time_limit.map(|limit| match limit {
            TimeLimitSetting::Unlimited => "no time limit".to_owned(),
            TimeLimitSetting::Limit(limit) => format!("time limit {limit}"),
        });
        let parts = [
            priority.map(|priority| format!("priority {priority}")),
            limit,
            retries.map(|retries| format!("retries {retries}")),
            begin.map(|_| "begin time".to_owned()),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}
