//! The coordinator: the process of the root job. It runs none of the user's code.
//!
//! `shell` drives the core by what processes and the head say, `runner_jobs` has the head
//! start and end the other processes, and `report` reads what it says of their jobs. In tests, threads stand
//! for both: `application_jobs` is either.
//!
//! What users ask about the application comes in `inspection`; the answers are made in `actor_listing`,
//! `task_listing` and `object_listing` of what the core knows and of what a `survey` of the members finds.

mod actor_listing;
mod application_jobs;
mod inspection;
mod object_listing;
mod report;
mod runner_jobs;
mod shell;
mod survey;
mod task_listing;

use cohabit_types::ApplicationAccess;

use self::application_jobs::ApplicationJobs;
use self::runner_jobs::RunnerJobs;
use crate::local::ThreadJobs;
use crate::start_entry::MainEntry;
use crate::terminal::say;

/// The exit code of a coordinator that cannot begin.
const FAILED: i32 = 1;

/// Runs the application until it is over; returns its exit code.
pub(crate) async fn coordinate(access: ApplicationAccess, entry: MainEntry) -> i32 {
    let ended = match RunnerJobs::open(&access) {
        Ok(jobs) => shell::run(access, entry, ApplicationJobs::OfHead(jobs)).await,
        Err(text) => Err(text),
    };
    ended.unwrap_or_else(|text| {
        say(&text);
        FAILED
    })
}

/// The same for an application of threads.
///
/// # Errors
/// In words, if it cannot go on.
pub(crate) async fn coordinate_threads(
    access: ApplicationAccess,
    entry: MainEntry,
    jobs: ThreadJobs,
) -> Result<i32, String> {
    tokio::select! {
        ended = shell::run(access, entry, ApplicationJobs::OfThreads(jobs.clone())) => ended,
        // An actor is left that was detached: it goes with the test.
        () = jobs.overdue() => Ok(0),
    }
}
