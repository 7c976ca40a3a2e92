//! What counts in reports on users and projects, as plain data: `accounting` says when something does.

use cohabit_types::{AttemptId, JobState, Slowdown, Span, Time};

/// Something that counts in a report.
#[derive(Debug, Clone, PartialEq)]
pub struct AccountingEntry {
    /// Whose.
    pub owner: AccountOwner,
    /// When it happened.
    pub at: Time,
    /// What happened.
    pub kind: AccountingKind,
}

/// Whose account it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AccountOwner {
    /// Their project at that time; their own name if they were in none.
    pub project: String,
    /// The user.
    pub user: String,
}

/// What counts.
#[derive(Debug, Clone, PartialEq)]
pub enum AccountingKind {
    /// An attempt was placed, after it had waited for room only for so long.
    Started(Span),
    /// An attempt ended.
    AttemptEnded {
        /// What it held.
        account: AttemptAccount,
        /// How it ended, in one word.
        how: &'static str,
        /// Whether that was no doing of its job or its user.
        is_lost: bool,
    },
    /// A job, or a member of an array, ended.
    JobEnded(JobState),
}

/// What an attempt holds, or held until its end.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptAccount {
    /// The attempt.
    pub attempt: AttemptId,
    /// When it was placed.
    pub started_at: Time,
    /// Its devices, each times the part that it holds.
    pub devices: f64,
    /// Its devices.
    pub device_count: usize,
    /// Whether nobody else may be on its devices.
    pub is_exclusive: bool,
    /// The slowdown that was predicted when it was placed.
    pub predicted_slowdown: Option<Slowdown>,
    /// When it last reported progress, as far as its end tells.
    pub last_progress: Option<Time>,
}

/// What a live attempt holds, and what its workers have measured so far.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveAccount {
    /// Whose.
    pub owner: AccountOwner,
    /// What it holds.
    pub account: AttemptAccount,
    /// Seconds on its devices, each times the part that it holds.
    pub time: MeasuredTime,
}

/// Seconds on devices, each times the part that was held, as workers measured them.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct MeasuredTime {
    /// What readings cover.
    pub measured: f64,
    /// Utilization over it.
    pub busy: f64,
    /// The part of it in which nothing was done for long.
    pub idle: f64,
}
