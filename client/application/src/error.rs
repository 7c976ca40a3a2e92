//! What goes wrong with calls, actors and tasks, by what the program can do about it.

use std::fmt;
use std::time::Duration;

use cohabit_application_core::{ActorEnd, CallError, CreateError, MAX_CALLS, MAX_TASK_BYTES, MAX_TASKS};

/// What to do where no process can run a task.
const NO_RUNNER_REMEDY: &str =
    "let the task claim less, or see with `cohabit list` and `cohabit logs` how its processes ended";

/// The result of a call, with [`Error`] unless another error is named.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call has no value, or something else could not be done.
///
/// Any other error becomes [`Error::Failed`] with `?`. For that, this type is no [`std::error::Error`]
/// itself; [`Error::into_boxed`] makes one of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The method or task returned an error: its text, and those of its causes after colons.
    Failed(String),
    /// The method or task panicked: its message. An actor is constructed again, as a new incarnation.
    Panicked(String),
    /// The process of the actor ended after it had got the call.
    Restarted {
        /// Whether the method ran.
        ran: Ran,
    },
    /// The actor was stopped, or nobody held a handle of it.
    Stopped,
    /// The constructor of the actor returned an error or panicked: its text.
    ConstructorFailed(String),
    /// The actor does not come back: what the head says.
    GivenUp(String),
    /// Processes ended that had got the task, and no retry is left: what is known of it.
    Lost(String),
    /// No process can run the task: why.
    NoRunner(String),
    /// The task would wait for ever for GPUs that waiting tasks of the application hold: what it needs, and
    /// what to do.
    Deadlock(String),
    /// An argument was a reference whose call failed: its error.
    Dependency(String),
    /// The value of a reference is nowhere any more: why.
    ObjectLost(String),
    /// There was no room for a value in the shared memory of its node: what is full, and what to do.
    StoreFull(String),
    /// The call was cancelled.
    Cancelled,
    /// The call did not end within this time, and was cancelled.
    TimedOut(Duration),
    /// Too many calls of this process to the actor, or tasks of this caller, have not ended.
    Full,
    /// No live actor has this name.
    NotFound(String),
    /// It cannot be done: why, and what to do instead.
    Refused(String),
}

/// Whether a method ran whose process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ran {
    /// It may have run, in part or as a whole.
    Unknown,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Failed(text)
            | Error::Refused(text)
            | Error::Lost(text)
            | Error::NoRunner(text)
            | Error::Deadlock(text)
            | Error::Dependency(text)
            | Error::ObjectLost(text)
            | Error::StoreFull(text) => f.write_str(text),
            Error::Panicked(text) => CallError::Panicked(text.clone()).fmt(f),
            Error::Restarted { ran: Ran::Unknown } => CallError::Restarted.fmt(f),
            Error::Stopped => ActorEnd::Stopped.fmt(f),
            Error::ConstructorFailed(text) => ActorEnd::ConstructorFailed(text.clone()).fmt(f),
            Error::GivenUp(text) => ActorEnd::GivenUp(text.clone()).fmt(f),
            Error::Cancelled => CallError::Cancelled.fmt(f),
            Error::TimedOut(limit) => {
                write!(
                    f,
                    "the call did not end within {limit:?} and was cancelled: give it more with .within()"
                )
            }
            Error::Full => write!(
                f,
                "there is no room for another call ({MAX_CALLS} of a process to an actor, {MAX_TASKS} tasks or {} \
                 MiB of arguments of a caller): await some before the next one, or make it with .start()",
                MAX_TASK_BYTES >> 20
            ),
            Error::NotFound(name) => {
                write!(f, "no live actor is named '{name}': create it, with .name(\"{name}\")")
            }
        }
    }
}

/// Its text, and those of its causes.
impl<E: Into<Box<dyn std::error::Error + Send + Sync>>> From<E> for Error {
    fn from(error: E) -> Error {
        let error = error.into();
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            // Some errors tell their cause themselves.
            let told = error.to_string();
            if !text.ends_with(&told) {
                text.push_str(": ");
                text.push_str(&told);
            }
            cause = error.source();
        }
        Error::Failed(text)
    }
}

impl Error {
    /// The same as a standard error, for functions that return those.
    #[must_use]
    pub fn into_boxed(self) -> Box<dyn std::error::Error + Send + Sync> {
        self.to_string().into()
    }

    pub(crate) fn of_call(error: CallError) -> Error {
        match error {
            CallError::Lost { .. } => Error::Lost(error.to_string()),
            CallError::NoRunner(_) => Error::NoRunner(format!("{error}; {NO_RUNNER_REMEDY}")),
            CallError::Deadlock(text) => Error::Deadlock(text),
            CallError::Dependency(_) => Error::Dependency(error.to_string()),
            CallError::ObjectLost(_) => Error::ObjectLost(error.to_string()),
            CallError::StoreFull(_) => Error::StoreFull(error.to_string()),
            CallError::TimedOut(limit) => Error::TimedOut(limit.into()),
            CallError::Failed(text) => Error::Failed(text),
            CallError::Panicked(text) => Error::Panicked(text),
            CallError::Restarted => Error::Restarted { ran: Ran::Unknown },
            CallError::Ended(end) => Error::of_end(end),
            CallError::Cancelled => Error::Cancelled,
            CallError::Full => Error::Full,
            CallError::Refused(text) => Error::Refused(text),
        }
    }

    pub(crate) fn of_creation(error: &CreateError) -> Error {
        Error::Refused(error.to_string())
    }

    fn of_end(end: ActorEnd) -> Error {
        match end {
            ActorEnd::Stopped => Error::Stopped,
            ActorEnd::ConstructorFailed(text) => Error::ConstructorFailed(text),
            ActorEnd::GivenUp(text) => Error::GivenUp(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the model cannot be read")]
    struct Unreadable(#[source] std::io::Error);

    fn fails() -> Result<()> {
        let source = std::io::Error::other("no such file");
        Err(Unreadable(source))?
    }

    #[test]
    fn any_error_becomes_a_failure_with_its_causes() {
        let text = "the model cannot be read: no such file";
        assert_eq!(fails(), Err(Error::Failed(text.into())));
        let said = || -> Result<()> { Err("too few samples")? };
        assert_eq!(said(), Err(Error::Failed("too few samples".into())));
        let chain = || -> Result<()> { Err(anyhow::anyhow!("outer").context("context"))? };
        assert_eq!(chain(), Err(Error::Failed("context: outer".into())));
        let passed = || -> Result<()> { Err(Error::Full)? };
        assert_eq!(passed(), Err(Error::Full));
    }
}
