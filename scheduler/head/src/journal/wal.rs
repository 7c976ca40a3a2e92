//! The write-ahead log beside the journal's file, as bytes on the disk.
//!
//! SQLite ends its recovery at the first frame that does not fit its checksum: right for a commit that a loss
//! of power cut short, but silent about commits behind a damaged frame. So the head looks at the log before
//! SQLite does. A damaged frame with a later commit behind it is no torn end: that commit was begun when the
//! damaged one was durable.
//!
//! `scan` reads the log, `rewrite` writes one that SQLite reads to its end, and `damage` says what is behind
//! the damage and repairs it.

mod damage;
mod paths;
mod rewrite;
mod scan;
#[cfg(test)]
mod tests;

pub use damage::{LogRepair, RepairedLog};
pub(crate) use damage::{check_log, repair_log};
pub(crate) use paths::log_of;
