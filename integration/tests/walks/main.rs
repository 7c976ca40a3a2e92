//! The walks of newcomers: a student, an admin and a developer do what the documents say, one command after
//! the other, as somebody who copies them. (The researcher's walk is `simulation_guide.rs`.)
//!
//! Commands are read from the documents, so a document that changes changes its walk. `document` finds the
//! blocks of a section, `kit` has the machines on which they run, the table of what is not the same in a test
//! (addresses, directories, example numbers of jobs), and the table of what is left out, with the reasons.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod admin;
mod developer;
mod document;
mod kit;
mod student;
