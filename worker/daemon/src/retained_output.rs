//! The output of ended ranks that is kept: how much it is, and which goes first.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use cohabit_types::{Bytes, RankId};

use crate::removed_ranks::RemovalReason;

/// How much output of ended ranks is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RetentionLimits {
    /// How long.
    pub(crate) age: Duration,
    /// How much of the disk all of it may take.
    pub(crate) bytes: Bytes,
    /// Of how many ranks.
    pub(crate) ranks: usize,
}

impl RetentionLimits {
    /// What ended before goes. A span that is longer than the clock goes back keeps everything.
    pub(crate) fn oldest_kept(&self) -> Option<SystemTime> {
        SystemTime::now().checked_sub(self.age)
    }
}

/// The output of ended ranks.
#[derive(Debug, Default)]
pub(crate) struct RetainedOutput {
    /// How much it is of each, by the time of their end.
    ranks: BTreeMap<(SystemTime, RankId), Bytes>,
    bytes: u64,
}

impl RetainedOutput {
    pub(crate) fn add(&mut self, ended_at: SystemTime, rank: RankId, size: Bytes) {
        let before = self.ranks.insert((ended_at, rank), size);
        self.bytes = self.bytes + size.0 - before.map_or(0, |size| size.0);
    }

    /// Takes out the ranks that ended before this time.
    pub(crate) fn take_old(&mut self, before: Option<SystemTime>) -> Vec<RankId> {
        let mut old = Vec::new();
        while let Some(((ended_at, _), _)) = self.ranks.first_key_value()
            && before.is_some_and(|before| *ended_at < before)
        {
            old.extend(self.take_oldest());
        }
        old
    }

    /// Takes out the oldest ranks, until what is left is within the limits.
    pub(crate) fn take_excess(&mut self, limits: &RetentionLimits) -> Vec<(RankId, RemovalReason)> {
        let mut excess = Vec::new();
        while let Some(reason) = self.excess(limits)
            && let Some(rank) = self.take_oldest()
        {
            excess.push((rank, reason));
        }
        excess
    }

    fn excess(&self, limits: &RetentionLimits) -> Option<RemovalReason> {
        if self.bytes > limits.bytes.0 {
            return Some(RemovalReason::Space);
        }
        (self.ranks.len() > limits.ranks).then_some(RemovalReason::Count)
    }

    fn take_oldest(&mut self) -> Option<RankId> {
        let ((_, rank), size) = self.ranks.pop_first()?;
        self.bytes -= size.0;
        Some(rank)
    }
}
