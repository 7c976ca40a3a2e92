//! The history: jobs that ended, how fast they ran beside others, and which of them did not fit together, as
//! tables that people may query. It keeps them for longer than the head keeps them in memory.
//!
//! The journal's thread writes rows in the journal's own commits (`rows`, `samples`, `misfits`). Each read
//! opens a connection of its own (`read`), so a long query of one user never delays the head. The tables are
//! in `journal/schema/*.sql`.

mod misfits;
mod read;
mod rows;
mod samples;

#[cfg(test)]
mod tests;

pub(crate) use misfits::insert as insert_misfits;
pub(crate) use read::HistoryReader;
pub(crate) use rows::{prune, upsert};
pub(crate) use samples::{StoredSample, insert as insert_samples};
