//! Files from one directory to another, through both ends.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod hostile;
mod kit;
mod sending;
