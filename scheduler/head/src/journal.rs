//! The journal: every event is durable, in order, before the head acts on it.
//!
//! [`Journal`] is what a head needs of a store; [`SqliteJournal`] is the store that ships. The history of
//! ended jobs lives in the same file, so one commit covers both. The text of events and snapshots is the
//! business of the crate `cohabit-journal`; this module keeps that text and says which format it has.
//!
//! A journal never interprets events and never repairs itself: what it cannot read is an error, and nothing
//! is overwritten.
//!
//! A snapshot is written in parts, each with its own commit, so that other commits never wait long. It counts
//! once all its parts are durable; until then the snapshot before it does.
//!
//! Start with `store` (the trait and its data), then `sqlite` (opening and writing), `load` (reading),
//! `schema` (the formats of the file) and `wal` (damage that SQLite would pass over).

mod encoded_part;
mod load;
mod schema;
mod sqlite;
mod store;
mod sweep;
mod wal;
mod writer;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

pub(crate) use encoded_part::{EncodedPart, PartDecodeError};
pub(crate) use sqlite::SqliteJournal;
pub(crate) use store::{Journal, JournalEntry, JournalWrite, LoadedSnapshot};
pub use wal::{LogRepair, RepairedLog};
pub(crate) use wal::{check_log, log_of, repair_log};
pub(crate) use writer::{Commit, JournalWriteError, JournalWriter};
