//! How records look: tables and sheets for people, documents for scripts.
//!
//! Everything here turns records into text and touches nothing else; what the screen can do comes in as an
//! argument.

pub(crate) mod changes;
pub(crate) mod documents;
pub(crate) mod job_sheet;
pub(crate) mod jobs_table;
pub(crate) mod models;
mod moments;
pub(crate) mod node_documents;
pub(crate) mod nodes_table;
mod progress;
pub(crate) mod states;
pub(crate) mod tokens_table;

pub(crate) use self::moments::{local_time, rfc3339};
#[cfg(feature = "demo")]
pub(crate) use self::progress::progress_text;

#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;
