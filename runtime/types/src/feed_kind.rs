//! The kinds of events in the feed: what users ask to be told of, and what admins route.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::JobState;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FeedKind {
    /// An attempt of a job runs; of an array, the first member.
    Start,
    /// A job ended well, or was cancelled; of an array, the last member.
    End,
    /// A job failed.
    Fail,
    /// A job reached its time limit.
    Timeout,
    /// A job ran out of memory.
    #[serde(rename = "oom")]
    OutOfMemory,
    /// A job has reported no step for longer than its stall timeout.
    Stall,
    /// The GPUs of a job have done nothing for half an hour.
    Idle,
    /// A job waits again: its attempt failed, lost its node, or was queued again by a user.
    Requeue,
    /// A job waits again, because a more urgent one took its place.
    Reclaim,
    /// A node has been unreachable for so long that its jobs are given up.
    NodeLost,
    /// A node that was lost is there again.
    NodeBack,
    /// A GPU is out of service until somebody has looked after it.
    GpuFenced,
    /// A GPU is in service again.
    GpuBack,
}

impl FeedKind {
    /// Every kind.
    pub const ALL: [FeedKind; 13] = [
        FeedKind::Start,
        FeedKind::End,
        FeedKind::Fail,
        FeedKind::Timeout,
        FeedKind::OutOfMemory,
        FeedKind::Stall,
        FeedKind::Idle,
        FeedKind::Requeue,
        FeedKind::Reclaim,
        FeedKind::NodeLost,
        FeedKind::NodeBack,
        FeedKind::GpuFenced,
        FeedKind::GpuBack,
    ];

    /// The kind as people write it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            FeedKind::Start => "start",
            FeedKind::End => "end",
            FeedKind::Fail => "fail",
            FeedKind::Timeout => "timeout",
            FeedKind::OutOfMemory => "oom",
            FeedKind::Stall => "stall",
            FeedKind::Idle => "idle",
            FeedKind::Requeue => "requeue",
            FeedKind::Reclaim => "reclaim",
            FeedKind::NodeLost => "node-lost",
            FeedKind::NodeBack => "node-back",
            FeedKind::GpuFenced => "gpu-fenced",
            FeedKind::GpuBack => "gpu-back",
        }
    }

    /// Whether it happens to jobs.
    #[must_use]
    pub const fn is_of_job(self) -> bool {
        match self {
            FeedKind::Start
            | FeedKind::End
            | FeedKind::Fail
            | FeedKind::Timeout
            | FeedKind::OutOfMemory
            | FeedKind::Stall
            | FeedKind::Idle
            | FeedKind::Requeue
            | FeedKind::Reclaim => true,
            FeedKind::NodeLost | FeedKind::NodeBack | FeedKind::GpuFenced | FeedKind::GpuBack => false,
        }
    }

    /// Whether somebody who asks for this kind is told of the other: every failure is an end, and a time-out
    /// is a failure.
    #[must_use]
    pub const fn covers(self, other: FeedKind) -> bool {
        match other {
            FeedKind::Timeout | FeedKind::OutOfMemory if matches!(self, FeedKind::Fail | FeedKind::End) => {
                true
            }
            FeedKind::Fail => matches!(self, FeedKind::Fail | FeedKind::End),
            FeedKind::Reclaim => matches!(self, FeedKind::Requeue | FeedKind::Reclaim),
            FeedKind::Start
            | FeedKind::End
            | FeedKind::Timeout
            | FeedKind::OutOfMemory
            | FeedKind::Stall
            | FeedKind::Idle
            | FeedKind::Requeue
            | FeedKind::NodeLost
            | FeedKind::NodeBack
            | FeedKind::GpuFenced
            | FeedKind::GpuBack => self as u8 == other as u8,
        }
    }

    /// The kind of the end of a job in this state; none where it has not ended.
    #[must_use]
    pub const fn of_end(state: JobState) -> Option<FeedKind> {
        match state {
            JobState::Completed | JobState::Cancelled => Some(FeedKind::End),
            JobState::Failed | JobState::NodeFail | JobState::Preempted => Some(FeedKind::Fail),
            JobState::Timeout => Some(FeedKind::Timeout),
            JobState::OutOfMemory => Some(FeedKind::OutOfMemory),
            JobState::Pending | JobState::Held | JobState::Running | JobState::Completing => None,
        }
    }
}

impl fmt::Display for FeedKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl FromStr for FeedKind {
    type Err = String;
    fn from_str(text: &str) -> Result<FeedKind, String> {
        let known = || FeedKind::ALL.map(FeedKind::word).join(", ");
        let found = FeedKind::ALL.into_iter().find(|kind| kind.word() == text);
        found.ok_or_else(|| format!("'{text}' is not an event: use one of {}", known()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_json_agree() {
        for kind in FeedKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.word());
            assert_eq!(kind.word().parse(), Ok(kind));
        }
        assert!("ended".parse::<FeedKind>().unwrap_err().contains("end, fail"));
    }

    #[test]
    fn who_asks_for_the_end_hears_of_every_failure_and_who_asks_for_failures_of_no_success() {
        let covered = |asked: FeedKind| FeedKind::ALL.into_iter().filter(move |it| asked.covers(*it));
        let covered = |asked| covered(asked).map(FeedKind::word).collect::<Vec<_>>().join(" ");
        assert_eq!(covered(FeedKind::End), "end fail timeout oom");
        assert_eq!(covered(FeedKind::Fail), "fail timeout oom");
        assert_eq!(covered(FeedKind::Timeout), "timeout");
        assert_eq!(covered(FeedKind::Requeue), "requeue reclaim");
        assert_eq!(covered(FeedKind::Reclaim), "reclaim");
        for kind in
            [FeedKind::Start, FeedKind::Stall, FeedKind::Idle, FeedKind::NodeLost, FeedKind::GpuFenced]
        {
            assert_eq!(covered(kind), kind.word());
        }
    }

    #[test]
    fn the_end_of_every_state_has_a_kind_and_of_no_other_state() {
        for state in JobState::ALL {
            assert_eq!(FeedKind::of_end(state).is_some(), state.is_terminal(), "{state}");
        }
    }
}
