//! The feed: what of the course of a cluster is worth telling people, in the order of the journal.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{ArraySummary, DeviceId, JobId, JobState, NotifyRequest, ReasonCode, Signal, Time};

/// A place in the feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedCursor {
    /// The number of the last entry that was seen; 0 before the first.
    pub number: u64,
    /// The time of that entry: another feed, such as that of a new cluster, has another entry of this number.
    pub at: Time,
}

impl FeedCursor {
    /// The place before the first entry of a feed.
    pub const START: FeedCursor = FeedCursor { number: 0, at: Time::EPOCH };
}

/// Entries after a cursor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Feed {
    /// Whether entries before these are missing.
    pub gap: FeedGap,
    /// The earliest first.
    pub entries: Vec<FeedEntry>,
    /// Where the next answer begins.
    pub next: FeedCursor,
    /// Whether there are entries after these already.
    pub more: bool,
}

/// Entries between a cursor and the first one of an answer that are no longer there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FeedGap {
    /// None.
    None,
    /// So many.
    Entries(u64),
    /// Nobody knows how many: the cursor is not of this feed, or the entries were those of others, too.
    Unknown,
}

/// An entry of the feed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FeedEntry {
    /// Entries are numbered from 1 on without a gap.
    pub number: u64,
    /// What happened.
    pub event: FeedEvent,
}

/// Something that is worth telling.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FeedEvent {
    /// When, by the head's clock.
    pub at: Time,
    /// What.
    pub kind: FeedKind,
    /// The job that it happened to, or the array as a whole.
    pub job: Option<FeedJob>,
    /// The node that it happened to.
    pub node: Option<String>,
    /// The device that it happened to.
    pub device: Option<DeviceId>,
    /// What happened, for people: a sentence without an end.
    pub text: String,
}

/// A job as it was when something happened to it. Its texts are shortened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FeedJob {
    /// Which job.
    pub id: JobId,
    /// Its name.
    pub name: String,
    /// Who submitted it.
    pub user: String,
    /// Its state.
    pub state: JobState,
    /// Why, for programs.
    pub reason_code: ReasonCode,
    /// Why, for people.
    pub reason: String,
    /// The number of the latest attempt; 0 before the first, and for an array as a whole.
    pub attempt: u32,
    /// How it exited, once it did.
    pub exit_code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<Signal>,
    /// The nodes of the latest attempt.
    pub nodes: Vec<String>,
    /// The members, if it is an array as a whole.
    pub array: Option<ArraySummary>,
    /// When it was submitted.
    pub submitted_at: Time,
    /// When its latest attempt was placed.
    pub started_at: Option<Time>,
    /// When it ended.
    pub ended_at: Option<Time>,
    /// What of its requests for messages this entry answers.
    pub requests: Vec<NotifyRequest>,
}

impl FeedEvent {
    /// About how many bytes it takes in a message.
    #[must_use]
    pub fn weight(&self) -> usize {
        let job = self.job.iter().map(|job| {
            let requests = job.requests.iter().filter_map(|it| it.channel.as_ref()).map(String::len);
            let texts = job.name.len() + job.user.len() + job.reason.len();
            let nodes: usize = job.nodes.iter().map(String::len).sum();
            texts + nodes + requests.sum::<usize>() + size_of::<FeedJob>()
        });
        let node = self.node.as_ref().map_or(0, String::len);
        let device = self.device.as_ref().map_or(0, |device| device.0.len());
        size_of::<FeedEvent>() + self.text.len() + node + device + job.sum::<usize>()
    }
}

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
    pub const ALL: [FeedKind; 12] = [
        FeedKind::Start,
        FeedKind::End,
        FeedKind::Fail,
        FeedKind::Timeout,
        FeedKind::OutOfMemory,
        FeedKind::Stall,
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
        for kind in [FeedKind::Start, FeedKind::Stall, FeedKind::NodeLost, FeedKind::GpuFenced] {
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
