//! The feed: what of the course of a cluster is worth telling people, in the order of the journal.

use serde::{Deserialize, Serialize};

use crate::{ArraySummary, DeviceId, FeedKind, JobId, JobState, NotifyRequest, ReasonCode, Signal, Time};

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
