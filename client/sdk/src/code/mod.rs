//! The code of a job as it is at submission: found in a folder, uploaded to the head, and read again.
//!
//! ```text
//! folder ── CodeFolder::scan ──▶ Manifest ── Client::upload_code ──▶ head ── Client::code_file ──▶ content
//! ```
//!
//! `folder` ties together what a scan does: `git` or `walk` lists the files, `ignore_rules` leaves out
//! those that `.cohabitignore` names, `found_file` looks at each, and `limits` refuses too many. `upload`
//! sends what the head lacks, read by `content_reader`, and `download` reads the code of a job.

mod content_reader;
mod download;
mod error;
mod folder;
mod found_file;
mod git;
mod ignore_rules;
mod limits;
mod upload;
mod walk;

pub use error::CodeError;
pub use folder::CodeFolder;
pub use limits::MOST_SNAPSHOT_BYTES;
pub use upload::CodeUpload;
