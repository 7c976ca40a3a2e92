//! An operation that Python waits for, in a thread or in an event loop.

use std::future::Future;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use cohabit_console::CommandError;
use futures::future::{BoxFuture, FutureExt};
use pyo3::exceptions::{PyRuntimeError, PyTimeoutError};
use pyo3::prelude::*;
use pyo3_async_runtimes::tokio::{future_into_py, get_runtime};

use crate::answer::NativeAnswer;
use crate::errors::exception;

/// How often a thread that waits looks whether Ctrl-C was pressed.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// The process whose threads carry operations out; 0 before the first one.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// What a call does.
type Work = BoxFuture<'static, Result<NativeAnswer, CommandError>>;

/// An operation that has not begun. It begins when it is waited for, once.
#[pyclass(frozen, name = "Call", module = "cohabit._native")]
pub(crate) struct NativeCall {
    work: Mutex<Option<Work>>,
}

impl NativeCall {
    pub(crate) fn new<F>(work: F) -> NativeCall
    where
        F: Future<Output = Result<NativeAnswer, CommandError>> + Send + 'static,
    {
        NativeCall { work: Mutex::new(Some(work.boxed())) }
    }

    fn take(&self) -> PyResult<Work> {
        check_process()?;
        let work = self.work.lock().unwrap_or_else(PoisonError::into_inner).take();
        work.ok_or_else(|| PyRuntimeError::new_err("a call can be waited for once"))
    }
}

#[pymethods]
impl NativeCall {
    /// Waits for the answer, for so many seconds. Other threads of Python run meanwhile, and Ctrl-C ends the
    /// waiting.
    fn wait<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Bound<'py, PyAny>> {
        let span = |seconds: f64| Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
        let limit = timeout.map(span);
        let begun = Instant::now();
        let work = self.take()?;
        let (tell, answered) = mpsc::sync_channel(1);
        let task = get_runtime().spawn(async move { drop(tell.send(work.await)) });
        // A receiver is for one thread alone, and this one is for this thread.
        let answered = Mutex::new(answered);
        loop {
            let next = py.detach(|| {
                answered.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(SIGNALS_EVERY)
            });
            match next {
                Ok(answer) => return answer.map_err(exception)?.into_pyobject(py),
                Err(RecvTimeoutError::Timeout) => {
                    py.check_signals().inspect_err(|_| task.abort())?;
                    if limit.is_some_and(|limit| begun.elapsed() >= limit) {
                        task.abort();
                        return Err(PyTimeoutError::new_err("the time to wait is over"));
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(exception(CommandError::internal("an operation ended without an answer")));
                }
            }
        }
    }

    /// The answer, for `await` in an event loop of asyncio. A cancelled task ends the operation.
    fn __await__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let work = self.take()?;
        let future = future_into_py(py, async move { work.await.map_err(exception) })?;
        future.call_method0("__await__")
    }
}

/// Threads do not survive a fork: a child would wait for ever.
fn check_process() -> PyResult<()> {
    let own = process::id();
    match OWNER.compare_exchange(0, own, Ordering::Relaxed, Ordering::Relaxed) {
        Err(owner) if owner != own => Err(PyRuntimeError::new_err(
            "cohabit was used before this process was forked, and cannot be used in it: start processes with \
             multiprocessing.set_start_method('spawn'), or use cohabit in the child only",
        )),
        Ok(_) | Err(_) => Ok(()),
    }
}
