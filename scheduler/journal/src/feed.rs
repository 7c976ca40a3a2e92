//! The events of the feed, as the journal's file keeps them. They have one form, which every version reads
//! and writes.

use cohabit_types::FeedEvent;
use serde_with::de::DeserializeAsWrap;
use serde_with::ser::SerializeAsWrap;

use crate::error::JournalDecodeError;
use crate::stored::StoredFeedEvent;

/// The JSON of an event of the feed.
///
/// # Errors
/// None that an event of this version can cause; serde's signature has one.
pub fn encode_feed_event(event: &FeedEvent) -> serde_json::Result<String> {
    serde_json::to_string(&SerializeAsWrap::<FeedEvent, StoredFeedEvent>::new(event))
}

/// The event of the feed that this JSON stands for.
///
/// # Errors
/// If the text is none.
pub fn decode_feed_event(text: &str) -> Result<FeedEvent, JournalDecodeError> {
    Ok(serde_json::from_str::<DeserializeAsWrap<FeedEvent, StoredFeedEvent>>(text)?.into_inner())
}
