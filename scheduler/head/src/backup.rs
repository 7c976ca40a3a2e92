//! Backups: a copy of a state directory in one file, and a new state directory from it.
//!
//! ```text
//! state directory ─> journal_copy, contents ─> manifest ─> create ─> FILE (tar)
//! FILE ─> manifest ─> restore ─> beside the new directory ─> journal: numbers jump ─> new state directory
//! ```
//!
//! A backup is made while the head runs or not: the journal is copied as of one moment, and a head that
//! writes it is not held up. Everything else that a head needs to come back under the same identity goes with
//! it; what belongs to a running process does not (`contents`). A restore checks every byte before the new
//! directory appears. It lets all numbers jump (`number_gap`), because the old head went on after the
//! backup.
//!
//! Everything here blocks.

mod contents;
mod create;
mod error;
mod hashing_reader;
mod journal_copy;
mod manifest;
mod number_gap;
mod restore;
mod target;
mod workspace;

#[cfg(test)]
mod tests;

pub use create::{BackupSummary, ExistingFile, back_up};
pub use error::BackupError;
pub use restore::{RestoreSummary, restore_backup};
