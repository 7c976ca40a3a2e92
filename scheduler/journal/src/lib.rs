//! The formats of the head's journal and snapshots.
//!
//! The journal and the snapshots outlive the version of Cohabit that wrote them, so nothing in them is
//! derived from the types that the code works with. This crate owns the stored types of each format and
//! converts them to and from those of `cohabit-scheduler-core` and `cohabit-types`. It reads and writes
//! text; the SQLite file around that text is the head's (`scheduler/head/src/journal`).
//!
//! - [`encode_event`] writes the newest format, [`decode_event`] reads every format. The same goes for the
//!   two kinds of parts of a snapshot: [`encode_head`] and [`encode_part`], [`decode_head`] and
//!   [`decode_part`].
//! - `v5` has the events of formats 1 to 5, which are only read; `v6` those of format 6. `snapshot` has a
//!   directory with the same two.
//! - `stored` has the shapes inside events and snapshots that all formats share: start there to see what a
//!   job looks like in the journal, and how to change a format.
//! - `tests/golden` has one line for every event and every value in it. Those of a released format never
//!   change.
#![warn(missing_docs)]

mod error;
mod event;
mod feed;
mod format;
mod record;
mod shape;
mod snapshot;
mod stored;
mod usage;
mod v5;
mod v6;

#[cfg(test)]
mod tests;

pub use error::JournalDecodeError;
pub use event::{decode_event, encode_event, is_journaled};
pub use feed::{decode_feed_event, encode_feed_event};
pub use format::FORMAT;
pub use record::{decode_record, encode_record};
pub use snapshot::{DecodedHead, decode_head, decode_part, encode_head, encode_part};
pub use usage::{decode_curve, encode_curve};
