//! The coordinator: the process of the root job. It runs none of the user's code.
//!
//! `shell` drives the core by what processes and the head say, `runner_jobs` has the head
//! start and end the other processes, and `report` reads what it says of their jobs.

mod report;
mod runner_jobs;
mod shell;

use cohabit_types::ApplicationAccess;

use crate::terminal::say;

/// The exit code of a coordinator that cannot begin.
const FAILED: i32 = 1;

/// Runs the application until it is over; returns its exit code.
pub(crate) async fn coordinate(access: ApplicationAccess, max_gpus: Option<u32>) -> i32 {
    match shell::run(access, max_gpus).await {
        Ok(code) => code,
        Err(text) => {
            say(&text);
            FAILED
        }
    }
}
