//! The processes that run the user's code: its `main`, one actor, or tasks.

use std::panic::resume_unwind;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cohabit_types::{ApplicationAccess, RunnerRole};
use futures::future::LocalBoxFuture;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::spawn_local;
use tokio::time::sleep;

use crate::actor_host::ActorHost;
use crate::process::{
    CalleeSockets, Dialer, MemberProcess, Outlets, ProcessEvent, accept_callers, keep_coordinator,
};
use crate::store::StoreLink;
use crate::task_host;
use crate::terminal::{exit, say};
use crate::transport::SocketDirectory;

/// How long a process that ends waits for what it sent to arrive.
pub(crate) const SETTLING: Duration = Duration::from_secs(5);

/// How long a process goes on after its coordinator has ended, before it ends itself.
const ORPHAN_GRACE: Duration = Duration::from_secs(5);

/// The exit code of a process that cannot go on.
const FAILED: i32 = 1;

/// The exit code of a process that was told to end: 128 and the number of SIGTERM.
pub(crate) const TERMINATED: i32 = 143;

/// How long a process that was told to end waits for its tasks to end at their next await.
const TASKS_PATIENCE: Duration = Duration::from_secs(5);

/// How long an interrupted task may go on before its process ends without it.
const INTERRUPT_PATIENCE: Duration = Duration::from_secs(5);

/// How long a process without tasks waits for one before it says so.
const REST: Duration = Duration::from_secs(5);

/// Runs the user's `main`; returns the exit code.
pub(crate) async fn run_main(access: ApplicationAccess, main: fn() -> LocalBoxFuture<'static, i32>) -> i32 {
    let process = match join(access, RunnerRole::Main, || {}) {
        Ok((process, _)) => process,
        Err(text) => return cannot_begin(&text),
    };
    // A task, so that what wakes it runs before the connections write.
    let code = spawn_local(main()).await;
    process.settle(SETTLING).await;
    match code {
        Ok(code) => code,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(_) => FAILED,
        },
    }
}

/// Holds one actor until the process is told to end; returns the exit code.
pub(crate) async fn run_actor(access: ApplicationAccess) -> i32 {
    // The host needs the process, which calls the host.
    let later: Rc<std::cell::OnceCell<Rc<ActorHost>>> = Rc::default();
    let hosted = Rc::clone(&later);
    let run = move || {
        if let Some(host) = hosted.get() {
            host.run();
        }
    };
    let Callee { process, mut terminate, mut events } = match serve(access, RunnerRole::Actor, run) {
        Ok(callee) => callee,
        Err(text) => return cannot_begin(&text),
    };
    let host = later.get_or_init(|| ActorHost::new(Arc::clone(&process)));
    let code = loop {
        tokio::select! {
            _ = terminate.recv() => break TERMINATED,
            Some(event) = events.recv() => match event {
                ProcessEvent::End if host.has_failed() => break FAILED,
                ProcessEvent::End => break 0,
                // Of a task, or of the process of a store.
                ProcessEvent::Interrupted(_) | ProcessEvent::Store(_) => {}
            },
        }
    };
    let stopped = host.stop().await;
    process.settle(SETTLING).await;
    match stopped {
        Ok(()) => code,
        Err(error) => {
            say(&format!("stopping failed: {error}"));
            FAILED
        }
    }
}

/// Runs tasks until the process is told to end; returns the exit code.
pub(crate) async fn run_tasks(access: ApplicationAccess) -> i32 {
    let Callee { process, mut terminate, mut events } = match serve(access, RunnerRole::Tasks, || {}) {
        Ok(callee) => callee,
        Err(text) => return cannot_begin(&text),
    };
    if let Err(error) = task_host::start(&process) {
        return cannot_begin(&format!("no thread for tasks: {error}"));
    }
    spawn_local(tell_rests(Arc::clone(&process)));
    let (late, mut interrupted) = unbounded_channel();
    let code = loop {
        tokio::select! {
            _ = terminate.recv() => {
                process.stop_tasks(TASKS_PATIENCE).await;
                break TERMINATED;
            }
            Some(ticket) = interrupted.recv() => if process.with(|state| state.abandon(ticket)) {
                say("a task did not end after it was cancelled, so its process ends: ask cohabit::cancelled() in it");
                break FAILED;
            },
            Some(event) = events.recv() => match event {
                ProcessEvent::End => break 0,
                // Of the process of a store.
                ProcessEvent::Store(_) => {}
                ProcessEvent::Interrupted(ticket) => {
                    let late = late.clone();
                    spawn_local(async move {
                        sleep(INTERRUPT_PATIENCE).await;
                        // The receiver waits as long as the process lives.
                        let _told = late.send(ticket);
                    });
                }
            },
        }
    };
    match process.settle(SETTLING).await {
        true => code,
        // With code 0 its callers would believe that what it has not answered has not started.
        false => code.max(FAILED),
    }
}

/// Tells the core whenever the process has had no task for some time.
async fn tell_rests(process: Arc<MemberProcess>) {
    loop {
        let until_next = process.with(|state| state.look_at_rest(REST));
        sleep(until_next).await;
    }
}

/// A process that others call.
struct Callee {
    process: Arc<MemberProcess>,
    /// The worker tells it to end.
    terminate: Signal,
    events: UnboundedReceiver<ProcessEvent>,
}

/// Makes this process a member that others can call; `after` is called when frames were handled.
///
/// # Errors
/// In words, if the system refuses what it needs.
fn serve(
    access: ApplicationAccess,
    role: RunnerRole,
    after: impl Fn() + Clone + 'static,
) -> Result<Callee, String> {
    let terminate = signal(SignalKind::terminate());
    let terminate = terminate.map_err(|error| format!("cannot wait for SIGTERM: {error}"))?;
    // Callers may come as soon as the coordinator knows of this process.
    let directory = SocketDirectory::open(&access.directory).map_err(|error| error.to_string())?;
    let sockets = CalleeSockets::listen(&directory, access.member);
    let sockets =
        sockets.map_err(|error| format!("cannot listen in {}: {error}", access.directory.display()))?;
    let (process, events) = join(access, role, after.clone())?;
    spawn_local(accept_callers(Arc::clone(&process), sockets, after));
    Ok(Callee { process, terminate, events })
}

/// Makes this process a member that keeps its connections; `after` is called when frames were handled.
///
/// # Errors
/// In words, if the directory of the sockets cannot be opened.
pub(crate) fn join(
    access: ApplicationAccess,
    role: RunnerRole,
    after: impl Fn() + Clone + 'static,
) -> Result<(Arc<MemberProcess>, UnboundedReceiver<ProcessEvent>), String> {
    let directory = SocketDirectory::open(&access.directory).map_err(|error| error.to_string())?;
    let ((dial, members), (events, received)) = (unbounded_channel(), unbounded_channel());
    let (secret, own, application) = (access.credentials.secret, access.member, access.application);
    let directory = Arc::new(directory);
    let store = StoreLink::new(Arc::clone(&directory), secret, own, application);
    let process = MemberProcess::start(access, directory, Outlets { dial, events }, store);
    let timed = Arc::clone(&process);
    spawn_local(async move { timed.watch_deadlines().await });
    let dialer = Dialer::new(&process, after.clone());
    spawn_local(async move {
        let ended = keep_coordinator(&dialer, role).await;
        // The head hears of it, too, and ends this process with the right reason.
        sleep(ORPHAN_GRACE).await;
        say(&ended);
        exit(FAILED)
    });
    spawn_local(Dialer::new(&process, after).dial_members(members));
    Ok((process, received))
}

pub(crate) fn cannot_begin(text: &str) -> i32 {
    say(text);
    FAILED
}
