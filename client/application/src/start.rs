//! What a program with `#[cohabit::main]` does first: it finds out which process of an application it is.

use std::io::{self, Read};
use std::process::ExitCode;

use cohabit_types::{ApplicationAccess, ApplicationRole, RunnerRole};
use futures::future::LocalBoxFuture;
use rustix::fs::{Mode, OFlags, open};
use tokio::runtime::Builder;
use tokio::task::LocalSet;

use crate::error::Error;
use crate::runner::cannot_begin;
use crate::start_entry::MainEntry;
use crate::surroundings::{EndRequest, Surroundings};
use crate::terminal::{exit, say};
use crate::{coordinator, launcher, registry, runner, store_process};

/// What a `main` may return.
pub trait MainReturn {
    /// The exit code; an error is said on standard error.
    fn code(self) -> i32;
}

impl MainReturn for () {
    fn code(self) -> i32 {
        0
    }
}

impl<E: Into<Error>> MainReturn for Result<(), E> {
    fn code(self) -> i32 {
        match self.map_err(Into::into) {
            Ok(()) => 0,
            Err(error) => {
                say(&format!("main failed: {error}"));
                FAILED
            }
        }
    }
}

/// The exit code of a process that cannot begin.
const FAILED: i32 = 1;

/// The longest access document, in bytes.
const LONGEST_ACCESS: u64 = 64 << 10;

/// Runs the part of the program that this process is for.
///
/// # Panics
/// If two actors or two tasks of the program have one name.
pub fn run(entry: MainEntry, main: fn() -> LocalBoxFuture<'static, i32>) -> ExitCode {
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            say(&format!("cannot begin: {error}"));
            return ExitCode::FAILURE;
        }
    };
    // Every process of the program finds two of one name, the one that people start first.
    registry::check();
    let local = LocalSet::new();
    let code = match std::env::var(ApplicationRole::VARIABLE) {
        Err(_) => runtime.block_on(local.run_until(launcher::launch(entry))),
        Ok(role) => match begin(&role) {
            Ok((role, access)) => {
                let ended = runtime.block_on(local.run_until(run_role(role, access, entry, main)));
                ended.unwrap_or_else(|text| cannot_begin(&text))
            }
            Err(text) => cannot_begin(&text),
        },
    };
    // Blocking tasks of the program may go on for ever.
    exit(code)
}

async fn run_role(
    role: ApplicationRole,
    access: ApplicationAccess,
    entry: MainEntry,
    main: fn() -> LocalBoxFuture<'static, i32>,
) -> Result<i32, String> {
    let surroundings = Surroundings::Process;
    Ok(match role {
        ApplicationRole::Coordinator => coordinator::coordinate(access, entry).await,
        ApplicationRole::Runner(RunnerRole::Main) => runner::run_main(access, &surroundings, main).await?,
        ApplicationRole::Runner(RunnerRole::Actor) => {
            runner::run_actor(access, &surroundings, EndRequest::by_signal()?).await
        }
        ApplicationRole::Runner(RunnerRole::Tasks) => {
            runner::run_tasks(access, &surroundings, EndRequest::by_signal()?).await
        }
        ApplicationRole::Runner(RunnerRole::Store) => store_process::run_store(access, entry).await,
    })
}

/// The role of this process, and what it may do; standard input is empty from then on.
fn begin(role: &str) -> Result<(ApplicationRole, ApplicationAccess), String> {
    let variable = ApplicationRole::VARIABLE;
    let role = ApplicationRole::parse(role).ok_or_else(|| format!("{variable}={role} is no role"))?;
    let mut document = Vec::new();
    let read = io::stdin().lock().take(LONGEST_ACCESS).read_to_end(&mut document);
    read.map_err(|error| format!("cannot read the access of the application: {error}"))?;
    let access = serde_json::from_slice(&document).map_err(|error| {
        format!(
            "standard input has no access to an application ({error}): unset {variable}, which only workers set, to \
             start the program by hand"
        )
    })?;
    let empty = open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let replaced = empty.and_then(rustix::stdio::dup2_stdin);
    replaced.map_err(|error| format!("cannot close standard input: {error}"))?;
    Ok((role, access))
}
