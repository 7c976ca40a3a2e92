//! Runs the tasks of this process, on a thread of their own: one that computes delays no connection.
//!
//! A task is polled at once when it is started; only one that has to wait becomes a task of the runtime. One
//! that waits for calls that it made, or until its stream is read, lets the core start others.

use std::future::poll_fn;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context as PollContext, Poll, Waker};
use std::time::{Duration, Instant};

use cohabit_application_core::CallError;
use futures::FutureExt;
use tokio::runtime::Builder;
use tokio::task::{LocalSet, spawn_local};

use crate::arguments::CallArguments;
use crate::context::Context;
use crate::process::{ArrivedArguments, HostWork, MemberProcess, RunningTask, TaskStart};
use crate::registry::TaskRegistry;
use crate::returned::{AbortableCall, CallEnd, CallFuture, ReturnedValue, abortable, panic_text};
use crate::terminal::{exit, say};

/// The exit code of a process whose tasks cannot be run.
const FAILED: i32 = 1;

/// What runs tasks.
struct TaskHost {
    process: Arc<MemberProcess>,
    context: Context,
}

/// The code of a task.
struct TaskRun {
    task: Arc<RunningTask>,
    code: AbortableCall,
    /// Time in polls.
    took: Duration,
    progress: TaskProgress,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TaskProgress {
    Active,
    /// The core knows that it waits for its calls, or for who reads its stream.
    Waits,
}

/// Starts the thread of the tasks of this process, which ends when [`MemberProcess::end`] is called.
///
/// # Errors
/// If the system has no thread or no runtime for it.
pub(crate) fn start(process: &'static Arc<MemberProcess>) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let serve = move || {
        MemberProcess::adopt(process);
        let host = Rc::new(TaskHost { process: Arc::clone(process), context: Context::new(1, process) });
        LocalSet::new().block_on(&runtime, host.serve());
    };
    std::thread::Builder::new().name("tasks".into()).spawn(move || {
        // The process is of no use without it.
        if catch_unwind(AssertUnwindSafe(serve)).is_err() {
            say("the thread of the tasks has ended: please report this as an error of cohabit");
            exit(FAILED)
        }
    })?;
    Ok(())
}

impl TaskHost {
    async fn serve(self: Rc<TaskHost>) {
        loop {
            while let Some(work) = self.process.with(|state| state.take_work()) {
                match work {
                    HostWork::StartTask(start) => self.start(start),
                    HostWork::Construct { .. } | HostWork::Start { .. } | HostWork::Interrupt { .. } => {
                        tracing::warn!(?work, "the process of tasks got work of an actor");
                    }
                }
            }
            tokio::select! {
                () = self.process.new_work() => {}
                () = self.process.ended() => return,
            }
        }
    }

    fn start(self: &Rc<TaskHost>, TaskStart { task, abort, function, arguments }: TaskStart) {
        let begun = match CallArguments::at_once(&self.process, arguments) {
            Ok(arguments) => self.begin(function, &arguments),
            Err(arguments) => Ok(Rc::clone(self).begin_later(function, arguments)),
        };
        let code = match begun {
            Ok(code) => abortable(code, abort),
            Err(error) => return self.tell_end(&task, Err(error), Duration::ZERO),
        };
        let mut run = TaskRun { task, code, took: Duration::ZERO, progress: TaskProgress::Active };
        let mut context = PollContext::from_waker(Waker::noop());
        match run.poll(&mut context) {
            Poll::Ready(end) => self.finish(run, end),
            Poll::Pending => {
                let host = Rc::clone(self);
                // The runtime polls it again at once, and is woken from then on.
                spawn_local(async move {
                    let end = poll_fn(|context| host.poll(&mut run, context)).await;
                    host.finish(run, end);
                });
            }
        }
    }

    /// A task that begins when the values of its arguments are here.
    fn begin_later(self: Rc<TaskHost>, function: u32, arguments: ArrivedArguments) -> CallFuture {
        Box::pin(async move {
            let arguments = CallArguments::fetch(&self.process, arguments).await?;
            let future = self.begin(function, &arguments)?;
            // What was decoded counts for itself.
            drop(arguments);
            future.await
        })
    }

    fn begin(&self, function: u32, arguments: &CallArguments) -> Result<CallFuture, CallError> {
        let unknown = || CallError::Refused(format!("the program has no task number {function}"));
        let entry = TaskRegistry::get().entry(function).ok_or_else(unknown)?;
        (entry.run)(arguments, &self.context)
    }

    /// Polls a task, and tells the core when it begins to wait for others, and when it goes on.
    fn poll(&self, run: &mut TaskRun, context: &mut PollContext<'_>) -> Poll<CallEnd> {
        if run.progress == TaskProgress::Waits {
            run.progress = TaskProgress::Active;
            self.process.with(|state| state.task_goes_on(&run.task));
        }
        let polled = run.poll(context);
        if polled.is_pending() && run.task.waits_for_others() {
            run.progress = TaskProgress::Waits;
            self.process.with(|state| state.task_waits(&run.task));
        }
        polled
    }

    fn finish(&self, TaskRun { task, code, took, .. }: TaskRun, end: CallEnd) {
        // What is in it cancels its calls, and may panic.
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(code)));
        let result = match (end, dropped) {
            (Ok(Err(panic)), _) | (Ok(Ok(_)) | Err(_), Err(panic)) => {
                Err(CallError::Panicked(panic_text(&*panic)))
            }
            (Ok(Ok(result)), Ok(())) => result,
            (Err(_aborted), Ok(())) => Err(CallError::Cancelled),
        };
        self.tell_end(&task, result, took);
    }

    fn tell_end(&self, task: &RunningTask, result: Result<ReturnedValue, CallError>, took: Duration) {
        let (result, carries, holds) = match result {
            Ok(returned) => {
                let (value, carries, holds) = returned.into_parts();
                (Ok(value), carries, holds)
            }
            Err(error) => (Err(error), Vec::new(), Vec::new()),
        };
        self.process.with(|state| state.task_ended(task, result, carries, took));
        drop(holds);
        self.process.task_ended.notify_one();
    }
}

impl TaskRun {
    fn poll(&mut self, context: &mut PollContext<'_>) -> Poll<CallEnd> {
        self.task.register(context.waker());
        let begun = Instant::now();
        let polled = self.task.run(|| self.code.poll_unpin(context));
        self.took += begun.elapsed();
        polled
    }
}
