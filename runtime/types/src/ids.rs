//! Ids: jobs, attempts, ranks, nodes, links, devices.
//!
//! Ids that people see have one text form (`12`, `12.5`, `12.5#2`, `12.5#2/0`), in JSON, logs and on the
//! command line; binary encodings carry the fields. Nothing here draws random numbers: ids come from callers.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

/// A job, or one member of an array of jobs: `12`, `12.5`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId {
    /// The number given at submission, from 1.
    pub number: u64,
    /// Which member of the array; none for a plain job and for an array as a whole.
    pub index: Option<u32>,
}

/// One try to run a job: `12.5#2`. Attempts count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptId {
    /// The job that is tried.
    pub job: JobId,
    /// Which try, from 1.
    pub attempt: u32,
}

/// One process of an attempt: `12.5#2/0`. Ranks count from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RankId {
    /// The attempt it belongs to.
    pub attempt: AttemptId,
    /// Which process, from 0.
    pub rank: u32,
}

impl JobId {
    /// A plain job, or an array as a whole.
    #[must_use]
    pub const fn new(number: u64) -> JobId {
        JobId { number, index: None }
    }

    /// A member of the array with this number.
    #[must_use]
    pub const fn member(number: u64, index: u32) -> JobId {
        JobId { number, index: Some(index) }
    }

    /// This job's attempt with the given number.
    #[must_use]
    pub const fn attempt(self, attempt: u32) -> AttemptId {
        AttemptId { job: self, attempt }
    }
}

impl AttemptId {
    /// This attempt's rank with the given number.
    #[must_use]
    pub const fn rank(self, rank: u32) -> RankId {
        RankId { attempt: self, rank }
    }
}

impl RankId {
    /// The job that it is a process of.
    #[must_use]
    pub const fn job(self) -> JobId {
        self.attempt.job
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index {
            Some(index) => write!(f, "{}.{index}", self.number),
            None => write!(f, "{}", self.number),
        }
    }
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.job, self.attempt)
    }
}

impl fmt::Display for RankId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.attempt, self.rank)
    }
}

/// A text that is no id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not {expected}")]
pub struct ParseIdError {
    text: String,
    expected: &'static str,
}

fn parse<T>(text: &str, expected: &'static str, read: impl FnOnce() -> Option<T>) -> Result<T, ParseIdError> {
    read().ok_or_else(|| ParseIdError { text: text.to_owned(), expected })
}

/// Digits only: `u64::from_str` would also take `+5`.
fn number<N: FromStr>(text: &str) -> Option<N> {
    if text.bytes().all(|b| b.is_ascii_digit()) { text.parse().ok() } else { None }
}

impl FromStr for JobId {
    type Err = ParseIdError;
    fn from_str(text: &str) -> Result<JobId, ParseIdError> {
        parse(text, "a job like 12 or 12.5", || {
            Some(match text.split_once('.') {
                Some((job, index)) => JobId::member(number(job)?, number(index)?),
                None => JobId::new(number(text)?),
            })
        })
    }
}

impl FromStr for AttemptId {
    type Err = ParseIdError;
    fn from_str(text: &str) -> Result<AttemptId, ParseIdError> {
        parse(text, "an attempt like 12#1", || {
            let (job, attempt) = text.split_once('#')?;
            Some(AttemptId { job: job.parse().ok()?, attempt: number(attempt)? })
        })
    }
}

impl FromStr for RankId {
    type Err = ParseIdError;
    fn from_str(text: &str) -> Result<RankId, ParseIdError> {
        parse(text, "a rank like 12#1/0", || {
            let (attempt, rank) = text.split_once('/')?;
            Some(RankId { attempt: attempt.parse().ok()?, rank: number(rank)? })
        })
    }
}

/// Text where people may read it (and as a key of a JSON map), fields where only machines do.
macro_rules! text_or_fields {
    ($id:ident, ($($field:ident: $type:ty),+)) => {
        impl Serialize for $id {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                if to.is_human_readable() { to.collect_str(self) } else { ($(self.$field),+).serialize(to) }
            }
        }
        impl<'de> Deserialize<'de> for $id {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<$id, D::Error> {
                if from.is_human_readable() {
                    std::borrow::Cow::<str>::deserialize(from)?.parse().map_err(D::Error::custom)
                } else {
                    let ($($field),+): ($($type),+) = Deserialize::deserialize(from)?;
                    Ok($id { $($field),+ })
                }
            }
        }
    };
}
text_or_fields!(JobId, (number: u64, index: Option<u32>));
text_or_fields!(AttemptId, (job: JobId, attempt: u32));
text_or_fields!(RankId, (attempt: AttemptId, rank: u32));

/// A machine that runs a worker. Drawn once by the worker and kept in its state directory, so it survives
/// restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(pub Uuid);

/// That of the bytes, compared as one number: maps by node are searched for each event.
impl Ord for NodeId {
    fn cmp(&self, other: &NodeId) -> Ordering {
        self.0.as_u128().cmp(&other.0.as_u128())
    }
}

impl PartialOrd for NodeId {
    fn partial_cmp(&self, other: &NodeId) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The number of a link among the successive links of a worker; the larger is the newer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Incarnation(pub u64);

/// One link of one worker; orders and reports are fenced by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WorkerKey {
    /// The machine.
    pub node: NodeId,
    /// The link.
    pub incarnation: Incarnation,
}

/// A request of a client, to which its reply belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClientRequestId(pub u64);

/// A request to the planner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PlanRequestId(pub u64);

/// A device within its node: a GPU's UUID, or `host-0` for a host slot.
/// Reference-counted, because every view of a device holds its id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DeviceId(pub Arc<str>);

impl DeviceId {
    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for WorkerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.node, self.incarnation.0)
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_read_back_what_they_show() {
        let rank = JobId::member(12, 5).attempt(2).rank(3);
        assert_eq!(rank.to_string(), "12.5#2/3");
        assert_eq!("12.5#2/3".parse(), Ok(rank));
        assert_eq!(serde_json::from_str::<RankId>("\"12.5#2/3\"").unwrap(), rank);
        let bytes = bincode::serialize(&rank).unwrap();
        assert_eq!(bincode::deserialize::<RankId>(&bytes).unwrap(), rank);
    }

    #[test]
    fn an_invalid_id_is_refused_with_an_example() {
        for text in ["", "x", "+5", "1.", ".5", "1.2.3", "-1", "99999999999999999999"] {
            assert!(text.parse::<JobId>().is_err(), "{text}");
        }
        let error = "1.x".parse::<JobId>().unwrap_err();
        assert_eq!(error.to_string(), "'1.x' is not a job like 12 or 12.5");
    }
}
