//! How long the application lives: as long as a main runs or a detached actor lives.

use std::collections::BTreeSet;

use cohabit_types::JobId;

/// The runners that run the user's `main`.
#[derive(Debug, Default)]
pub(crate) struct Mains {
    running: BTreeSet<JobId>,
    first: Option<JobId>,
    /// Of the first main, once it has ended.
    code: Option<i32>,
}

impl Mains {
    /// A main was submitted; the first one gives the application its exit code.
    pub(crate) fn add(&mut self, job: JobId) {
        self.first.get_or_insert(job);
        self.running.insert(job);
    }

    pub(crate) fn contains(&self, job: JobId) -> bool {
        self.running.contains(&job)
    }

    pub(crate) fn ended(&mut self, job: JobId, code: i32) {
        self.running.remove(&job);
        if self.first == Some(job) {
            self.code = Some(code);
        }
    }

    /// The exit code of the application, if no main runs any more.
    pub(crate) fn exit_code(&self) -> Option<i32> {
        self.code.filter(|_| self.running.is_empty())
    }
}
