//! The processes that run the user's code: its `main`, or one actor.

use std::panic::resume_unwind;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cohabit_types::{ApplicationAccess, RunnerRole};
use futures::future::LocalBoxFuture;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::spawn_local;
use tokio::time::sleep;

use crate::actor_host::ActorHost;
use crate::process::{Dialer, MemberProcess, accept_callers, keep_coordinator};
use crate::terminal::{exit, say};
use crate::transport::SocketDirectory;

/// How long a process that ends waits for what it sent to arrive.
const SETTLING: Duration = Duration::from_secs(5);

/// How long a process goes on after its coordinator has ended, before it ends itself.
const ORPHAN_GRACE: Duration = Duration::from_secs(5);

/// The exit code of a process that cannot go on.
const FAILED: i32 = 1;

/// The exit code of a process that was told to end: 128 and the number of SIGTERM.
const TERMINATED: i32 = 143;

/// Runs the user's `main`; returns the exit code.
pub(crate) async fn run_main(access: ApplicationAccess, main: fn() -> LocalBoxFuture<'static, i32>) -> i32 {
    let process = match join(access, RunnerRole::Main, || {}) {
        Ok(process) => process,
        Err(code) => return code,
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
    let member = access.member;
    let mut terminate = match signal(SignalKind::terminate()) {
        Ok(terminate) => terminate,
        Err(error) => {
            say(&format!("cannot wait for SIGTERM: {error}"));
            return FAILED;
        }
    };
    // The host needs the process, which calls the host.
    let later: Rc<std::cell::OnceCell<Rc<ActorHost>>> = Rc::default();
    let hosted = Rc::clone(&later);
    let run = move || {
        if let Some(host) = hosted.get() {
            host.run();
        }
    };
    let directory = match SocketDirectory::open(&access.directory) {
        Ok(directory) => directory,
        Err(error) => {
            say(&error.to_string());
            return FAILED;
        }
    };
    // Callers may come as soon as the coordinator knows of this process.
    let listener = match directory.listen(member) {
        Ok(listener) => listener,
        Err(error) => {
            say(&format!("cannot listen in {}: {error}", access.directory.display()));
            return FAILED;
        }
    };
    let process = match join(access, RunnerRole::Actor, run.clone()) {
        Ok(process) => process,
        Err(code) => return code,
    };
    let host = later.get_or_init(|| ActorHost::new(Arc::clone(&process)));
    spawn_local(accept_callers(Arc::clone(&process), listener, run));
    terminate.recv().await;
    let stopped = host.stop().await;
    process.settle(SETTLING).await;
    match stopped {
        Ok(()) => TERMINATED,
        Err(error) => {
            say(&format!("stopping failed: {error}"));
            FAILED
        }
    }
}

/// Makes this process a member that keeps its connections; `after` is called when frames were handled.
fn join(
    access: ApplicationAccess,
    role: RunnerRole,
    after: impl Fn() + Clone + 'static,
) -> Result<Arc<MemberProcess>, i32> {
    let directory = SocketDirectory::open(&access.directory).map_err(|error| {
        say(&error.to_string());
        FAILED
    })?;
    let (dial, members) = unbounded_channel();
    let process = MemberProcess::start(access, directory, dial);
    let dialer = Dialer::new(&process, after.clone());
    spawn_local(async move {
        let ended = keep_coordinator(&dialer, role).await;
        // The head hears of it, too, and ends this process with the right reason.
        sleep(ORPHAN_GRACE).await;
        say(&ended);
        exit(FAILED)
    });
    spawn_local(Dialer::new(&process, after).dial_members(members));
    Ok(process)
}
