//! How people name jobs: `12`, `12.5`, `3-7`, `last`, `@~1`, or a name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::JobId;

/// A reference to one or more jobs, as written; the head knows what it means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobRef {
    /// A job, an array, or a member.
    Id(JobId),
    /// All jobs with numbers from the first to the second, both included.
    Range(u64, u64),
    /// The user's last submission, or the one this many before it.
    Last(u32),
    /// The only job of the user with this name.
    Name(String),
}

/// A text that refers to no job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a job: use a number (12), a member (12.5), a range (3-7), last, @~1 or a name")]
pub struct ParseRefError(String);

impl FromStr for JobRef {
    type Err = ParseRefError;
    fn from_str(text: &str) -> Result<JobRef, ParseRefError> {
        let refuse = || ParseRefError(text.to_owned());
        if text == "last" || text == "@" {
            return Ok(JobRef::Last(0));
        }
        if let Some(back) = text.strip_prefix("@~") {
            return back.parse().map(JobRef::Last).map_err(|_| refuse());
        }
        if let Ok(id) = text.parse() {
            return Ok(JobRef::Id(id));
        }
        match text.split_once('-').map(|(first, last)| (first.parse(), last.parse())) {
            Some((Ok(first), Ok(last))) if first <= last => Ok(JobRef::Range(first, last)),
            Some((Ok(_), Ok(_))) => Err(refuse()),
            _ if text.starts_with(|c: char| c.is_alphabetic() || c == '_') => {
                Ok(JobRef::Name(text.to_owned()))
            }
            _ => Err(refuse()),
        }
    }
}

impl fmt::Display for JobRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JobRef::Id(id) => id.fmt(f),
            JobRef::Range(first, last) => write!(f, "{first}-{last}"),
            JobRef::Last(back) => write!(f, "@~{back}"),
            JobRef::Name(name) => f.write_str(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read() {
        let read = |text: &str| text.parse::<JobRef>().unwrap();
        assert_eq!(read("12"), JobRef::Id(JobId::new(12)));
        assert_eq!(read("12.5"), JobRef::Id(JobId::member(12, 5)));
        assert_eq!(read("3-7"), JobRef::Range(3, 7));
        assert_eq!(read("last"), JobRef::Last(0));
        assert_eq!(read("@~1"), JobRef::Last(1));
        assert_eq!(read("train-v2"), JobRef::Name("train-v2".into()));
        for bad in ["", "7-3", "@~x", "-1", "1.x"] {
            assert!(bad.parse::<JobRef>().is_err(), "{bad}");
        }
    }
}
