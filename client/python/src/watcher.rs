//! Follows many jobs with one question, for executors.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cohabit_client::JobsWatcher;
use cohabit_client::types::JobId;
use cohabit_console::CommandError;
use cohabit_documents::jobs::{JobDocument, JobListDocument};
use pyo3::prelude::*;
use tokio::sync::{Mutex as AsyncMutex, Notify};

use crate::answer::NativeAnswer;
use crate::call::NativeCall;
use crate::errors::exception;

/// Jobs that are followed. They may be added while somebody waits.
#[pyclass(frozen, name = "Watcher", module = "cohabit._native")]
pub(crate) struct NativeWatcher {
    shared: Arc<Shared>,
}

struct Shared {
    watcher: AsyncMutex<JobsWatcher>,
    added: Mutex<Vec<JobId>>,
    is_closed: AtomicBool,
    changed: Notify,
}

impl NativeWatcher {
    pub(crate) fn new(watcher: JobsWatcher) -> NativeWatcher {
        let shared = Shared {
            watcher: AsyncMutex::new(watcher),
            added: Mutex::default(),
            is_closed: AtomicBool::new(false),
            changed: Notify::new(),
        };
        NativeWatcher { shared: Arc::new(shared) }
    }
}

#[pymethods]
impl NativeWatcher {
    /// Follows these jobs, too, which are numbers.
    fn add(&self, jobs: Vec<String>) -> PyResult<()> {
        let parsed = jobs.iter().map(|job| job.parse()).collect::<Result<Vec<JobId>, _>>();
        let parsed = parsed.map_err(|error| exception(CommandError::invalid(format!("{error}"))))?;
        self.shared.added.lock().unwrap_or_else(PoisonError::into_inner).extend(parsed);
        self.shared.changed.notify_one();
        Ok(())
    }

    /// Nobody waits any more.
    fn close(&self) {
        self.shared.is_closed.store(true, Ordering::Relaxed);
        self.shared.changed.notify_one();
    }

    /// The records of jobs that have changed, the first time of each; `None` once this is closed. A job that
    /// has ended is followed no longer.
    fn changes(&self) -> NativeCall {
        let shared = Arc::clone(&self.shared);
        NativeCall::new(async move {
            let mut watcher = shared.watcher.lock().await;
            loop {
                if shared.is_closed.load(Ordering::Relaxed) {
                    return Ok(NativeAnswer::Done);
                }
                for job in std::mem::take(&mut *shared.added.lock().unwrap_or_else(PoisonError::into_inner)) {
                    watcher.add(job);
                }
                tokio::select! {
                    records = watcher.changes() => {
                        let jobs = records?.iter().map(JobDocument::from).collect();
                        return NativeAnswer::document(&JobListDocument { jobs });
                    }
                    () = shared.changed.notified() => {}
                }
            }
        })
    }
}
