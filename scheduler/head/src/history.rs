//! The history: jobs that ended, and how fast they got on beside others, as tables that people may query,
//! kept for longer than the head remembers them.
//!
//! Rows are written by the journal's thread in the journal's own commits. Reading opens a connection of its
//! own each time, so that a long question of one user never holds up the head.

mod read;
mod rows;
mod stretches;

#[cfg(test)]
mod tests;

pub(crate) use read::HistoryReader;
pub(crate) use rows::{prune, upsert};
pub(crate) use stretches::{StoredSample, insert as insert_stretches};
