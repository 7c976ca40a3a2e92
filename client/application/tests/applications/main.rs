//! Applications with real processes and sockets, against a fake head that starts them.
//!
//! The program of the tests is the example `actors`; its scenarios make the calls and check the values. The
//! real head is tested with applications in the integration tests.
#![expect(clippy::unwrap_used, reason = "tests, and what they share, end where something is wrong")]

mod fake_head;
mod fake_jobs;
mod launches;
mod nodes;
mod references;
mod scenarios;
mod strangers;
mod streams;
mod tasks;

use std::path::PathBuf;

/// The program of the tests, which cargo builds before it runs them.
fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.ancestors().skip(1).find(|it| !it.ends_with("deps")).unwrap();
    let program = folder.join("examples/actors");
    assert!(program.exists(), "build it first: cargo build -p cohabit --example actors");
    program
}
