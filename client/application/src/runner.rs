//! The processes that run the user's code: its `main`, one actor, or tasks.

use std::panic::resume_unwind;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cohabit_types::{ApplicationAccess, RunnerRole};
use futures::future::LocalBoxFuture;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::spawn_local;
use tokio::time::sleep;

use crate::actor_host::ActorHost;
use crate::process::{
    CalleeSockets, Dialer, MemberProcess, Outlets, ProcessEvent, accept_callers, keep_coordinator,
};
use crate::store::StoreLink;
use crate::surroundings::{EndRequest, Surroundings};
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

/// Runs the user's `main`; returns what it returns.
///
/// # Errors
/// In words, if it cannot begin.
pub(crate) async fn run_main<T: 'static>(
    access: ApplicationAccess,
    surroundings: &Surroundings,
    main: fn() -> LocalBoxFuture<'static, T>,
) -> Result<T, String> {
    let (process, _) = join(access, RunnerRole::Main, surroundings, || {})?;
    // An application that ends lets nobody in: its launcher can launch again what has not begun.
    process.admission().await;
    // A task, so that what wakes it runs before the connections write.
    let returned = spawn_local(main()).await;
    process.settle(SETTLING).await;
    returned.map_err(|error| match error.try_into_panic() {
        Ok(panic) => resume_unwind(panic),
        Err(error) => error.to_string(),
    })
}

/// Holds one actor until the process is told to end; returns the exit code.
pub(crate) async fn run_actor(
    access: ApplicationAccess,
    surroundings: &Surroundings,
    mut terminate: EndRequest,
) -> i32 {
    // The host needs the process, which calls the host.
    let later: Rc<std::cell::OnceCell<Rc<ActorHost>>> = Rc::default();
    let hosted = Rc::clone(&later);
    let run = move || {
        if let Some(host) = hosted.get() {
            host.run();
        }
    };
    let Callee { process, mut events } = match serve(access, RunnerRole::Actor, surroundings, run) {
        Ok(callee) => callee,
        Err(text) => return cannot_begin(&text),
    };
    let host = later.get_or_init(|| ActorHost::new(Arc::clone(&process)));
    let code = loop {
        tokio::select! {
            () = terminate.said() => break TERMINATED,
            Some(event) = events.recv() => match event {
                ProcessEvent::End if host.has_failed() => break FAILED,
                ProcessEvent::End => break 0,
                ProcessEvent::Failed => {
                    say("a method panicked, so all actors of its gang begin anew");
                    process.settle(SETTLING).await;
                    return FAILED;
                }
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
pub(crate) async fn run_tasks(
    access: ApplicationAccess,
    surroundings: &Surroundings,
    mut terminate: EndRequest,
) -> i32 {
    let served = serve(access, RunnerRole::Tasks, surroundings, || {});
    let Callee { process, mut events } = match served {
        Ok(callee) => callee,
        Err(text) => return cannot_begin(&text),
    };
    let begun = MemberProcess::current().map_err(|error| error.to_string());
    let begun = begun.and_then(|own| task_host::start(own).map_err(|error| error.to_string()));
    if let Err(error) = begun {
        return cannot_begin(&format!("no thread for tasks: {error}"));
    }
    spawn_local(tell_rests(Arc::clone(&process)));
    let (late, mut interrupted) = unbounded_channel();
    let code = loop {
        tokio::select! {
            () = terminate.said() => {
                process.stop_tasks(TASKS_PATIENCE).await;
                break TERMINATED;
            }
            Some(ticket) = interrupted.recv() => if process.with(|state| state.abandon(ticket)) {
                say("a task did not end after it was cancelled, so its process ends: ask cohabit::cancelled() in it");
                break FAILED;
            },
            Some(event) = events.recv() => match event {
                ProcessEvent::End => break 0,
                // Of the process of an actor or a store.
                ProcessEvent::Failed | ProcessEvent::Store(_) => {}
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
    let is_settled = process.settle(SETTLING).await;
    process.end();
    match is_settled {
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
    events: UnboundedReceiver<ProcessEvent>,
}

/// Makes this process a member that others can call; `after` is called when frames were handled.
///
/// # Errors
/// In words, if the system refuses what it needs.
fn serve(
    access: ApplicationAccess,
    role: RunnerRole,
    surroundings: &Surroundings,
    after: impl Fn() + Clone + 'static,
) -> Result<Callee, String> {
    // Callers may come as soon as the coordinator knows of this process.
    let directory = SocketDirectory::open(&access.directory).map_err(|error| error.to_string())?;
    let sockets = CalleeSockets::listen(&directory, access.member);
    let sockets =
        sockets.map_err(|error| format!("cannot listen in {}: {error}", access.directory.display()))?;
    let (process, events) = join(access, role, surroundings, after.clone())?;
    spawn_local(accept_callers(Arc::clone(&process), sockets, after));
    Ok(Callee { process, events })
}

/// Makes this process a member that keeps its connections; `after` is called when frames were handled.
///
/// # Errors
/// In words, if the directory of the sockets cannot be opened.
pub(crate) fn join(
    access: ApplicationAccess,
    role: RunnerRole,
    surroundings: &Surroundings,
    after: impl Fn() + Clone + 'static,
) -> Result<(Arc<MemberProcess>, UnboundedReceiver<ProcessEvent>), String> {
    let directory = SocketDirectory::open(&access.directory).map_err(|error| error.to_string())?;
    let ((dial, members), (events, received)) = (unbounded_channel(), unbounded_channel());
    let (secret, own, application) = (access.credentials.secret, access.member, access.coordinator_process());
    let directory = Arc::new(directory);
    let store = StoreLink::new(Arc::clone(&directory), secret, own, application);
    let process = MemberProcess::start(access, directory, Outlets { dial, events }, store, surroundings);
    let timed = Arc::clone(&process);
    spawn_local(async move { timed.watch_deadlines().await });
    let dialer = Dialer::new(&process, after.clone());
    let is_process = surroundings.is_process();
    spawn_local(async move {
        let ended = keep_coordinator(&dialer, role).await;
        // The head hears of it, too, and ends this process with the right reason.
        sleep(ORPHAN_GRACE).await;
        say(&ended);
        if is_process {
            exit(FAILED)
        }
    });
    spawn_local(Dialer::new(&process, after).dial_members(members));
    Ok((process, received))
}

pub(crate) fn cannot_begin(text: &str) -> i32 {
    say(text);
    FAILED
}
