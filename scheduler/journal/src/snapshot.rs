//! Snapshots: the state of a head in parts, and the text of each part in each format.
//!
//! Part 0 is the head without its jobs; the other parts have some of the jobs each. In formats 1 to 4 part 0
//! has all the jobs, and there is no other part.

mod decoded;
mod v5;
mod v6;

#[cfg(test)]
mod tests;

use cohabit_scheduler_core::{HeadSnapshot, SnapshotPart};
use serde::de::DeserializeOwned;
use serde_with::de::DeserializeAsWrap;
use serde_with::ser::SerializeAsWrap;

pub use decoded::DecodedHead;
pub(crate) use v6::SnapshotPartV6;

use crate::JournalDecodeError;
use crate::format::FORMAT;

/// The JSON of part 0 in the newest format, [`FORMAT`].
///
/// # Errors
/// Those of the JSON writer.
pub fn encode_head(head: &HeadSnapshot) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(&SerializeAsWrap::<HeadSnapshot, v6::HeadV6>::new(head))
}

/// The JSON of another part in the newest format, [`FORMAT`].
///
/// # Errors
/// Those of the JSON writer.
pub fn encode_part(part: &SnapshotPart) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(&SerializeAsWrap::<SnapshotPart, SnapshotPartV6>::new(part))
}

/// Decodes part 0 of a snapshot of this format.
///
/// # Errors
/// If the format is unknown, the text is not of that format, or the fields of a job contradict each other.
pub fn decode_head(format: u32, text: &[u8]) -> Result<DecodedHead, JournalDecodeError> {
    match format {
        1..=5 => convert(decode::<v5::HeadV5>(text)?),
        FORMAT => {
            let head = decode::<DeserializeAsWrap<HeadSnapshot, v6::HeadV6>>(text)?.into_inner();
            Ok(DecodedHead { head, jobs: None })
        }
        found => Err(JournalDecodeError::UnknownFormat { found }),
    }
}

/// Decodes another part of a snapshot of this format.
///
/// # Errors
/// If the format is unknown, the text is not of that format, or the fields of a job contradict each other.
pub fn decode_part(format: u32, text: &[u8]) -> Result<SnapshotPart, JournalDecodeError> {
    match format {
        1..=5 => convert(decode::<v5::SnapshotPartV5>(text)?),
        FORMAT => {
            let mut part = decode::<DeserializeAsWrap<SnapshotPart, SnapshotPartV6>>(text)?.into_inner();
            part.archived.sort_by_key(|(number, _)| *number);
            // The index in a run of equal jobs is the order of ids, but tools may order the keys of JSON by
            // their text.
            part.submissions.sort_by_key(|(number, _)| *number);
            part.jobs.sort_by_key(|(id, _)| *id);
            Ok(part)
        }
        found => Err(JournalDecodeError::UnknownFormat { found }),
    }
}

fn decode<T: DeserializeOwned>(text: &[u8]) -> Result<T, JournalDecodeError> {
    Ok(serde_json::from_slice(text)?)
}

/// A contradiction is an error of the text, like a missing field.
fn convert<T>(stored: impl TryInto<T, Error = String>) -> Result<T, JournalDecodeError> {
    stored.try_into().map_err(|why| JournalDecodeError::Json(serde::de::Error::custom(why)))
}
