//! The record of an ended job, as the history keeps it. It has one form, which every version reads and
//! writes.

use cohabit_types::JobRecord;
use serde_with::de::DeserializeAsWrap;
use serde_with::ser::SerializeAsWrap;

use crate::error::JournalDecodeError;
use crate::stored::StoredJobRecord;

/// The JSON of a job's record.
///
/// # Errors
/// None that a record of this version can cause; serde's signature has one.
pub fn encode_record(record: &JobRecord) -> serde_json::Result<String> {
    serde_json::to_string(&SerializeAsWrap::<JobRecord, StoredJobRecord>::new(record))
}

/// The record that this JSON stands for.
///
/// # Errors
/// If the text is no record of a job.
pub fn decode_record(text: &str) -> Result<JobRecord, JournalDecodeError> {
    Ok(serde_json::from_str::<DeserializeAsWrap<JobRecord, StoredJobRecord>>(text)?.into_inner())
}
