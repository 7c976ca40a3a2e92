//! The history: jobs that ended, how fast they ran beside others, which of them did not fit together, and
//! what they did with their GPUs, as tables that people may query. It keeps them for longer than the head
//! keeps them in memory. What the head itself needs of jobs that have left its memory is in the archive, a
//! table beside them, and so is the feed: what people may want to be told.
//!
//! The journal's thread writes rows in the journal's own commits (`rows`, `samples`, `misfits`, `usage`,
//! `archive`, `feed`). Each read opens a connection of its own (`read`), so a long query of one user never
//! delays the head. The tables are in `journal/schema/*.sql`.

mod account_days;
mod accounting;
mod archive;
mod feed;
mod misfits;
mod read;
mod rows;
mod samples;
mod usage;

#[cfg(test)]
mod tests;

pub(crate) use account_days::{AccountDays, AppliedSlowdown, DaySpan, attempt_amounts, day_of, start_of};
pub(crate) use accounting::{AccountedPlace, AccountingWrite, insert as account, prune as prune_accounts};
pub(crate) use archive::{ArchivedContent, insert as archive, prune as prune_archive};
pub(crate) use feed::{FeedPosition, FeedWrite, insert as insert_feed, prune as prune_feed, skip_numbers};
pub(crate) use misfits::insert as insert_misfits;
pub(crate) use read::HistoryReader;
pub(crate) use rows::{prune, upsert};
pub(crate) use samples::{StoredSample, insert as insert_samples};
pub(crate) use usage::insert as insert_usage;
