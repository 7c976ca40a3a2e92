//! Applications that run in one process, for tests: no head, no worker; each process is a thread.
//!
//! The coordinator, the store, sockets and frames are those of a cluster. `thread_jobs` starts and ends
//! threads as the head does processes; `run_test` puts all of it together for one test.

mod run_test;
mod thread_jobs;

pub use run_test::{TestReturn, run_test};
pub(crate) use thread_jobs::ThreadJobs;
