//! Events: which of them enter the journal, and their text in each format.

use cohabit_scheduler_core::Event;
use cohabit_types::Report;

use crate::error::JournalDecodeError;
use crate::format::FORMAT;
use crate::v5::EventV5;
use crate::v6::EventV6;

/// Whether an event has to be durable before the head handles it. The next report repeats what the others
/// say.
#[must_use]
pub const fn is_journaled(event: &Event) -> bool {
    !matches!(
        event,
        Event::Report(
            _,
            Report::Progress(_) | Report::Telemetry(_) | Report::Usage(_) | Report::ColocationSamples(_)
        )
    )
}

/// The JSON of an event in the newest format, [`FORMAT`].
///
/// # Errors
/// If the event never enters a journal (see [`is_journaled`]).
pub fn encode_event(event: &Event) -> serde_json::Result<String> {
    serde_json::to_string(&EventV6::from(event))
}

/// The event that this JSON of this format stands for.
///
/// # Errors
/// If the format is unknown, or the text is no event of that format.
pub fn decode_event(format: u32, text: &str) -> Result<Event, JournalDecodeError> {
    match format {
        1..=5 => Ok(serde_json::from_str::<EventV5>(text)?.into()),
        FORMAT => Ok(serde_json::from_str::<EventV6<'_>>(text)?.into()),
        found => Err(JournalDecodeError::UnknownFormat { found }),
    }
}
