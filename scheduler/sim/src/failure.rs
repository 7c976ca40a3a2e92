//! What may go wrong in a simulated cluster, and the exit code that says so.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use cohabit_types::Time;

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at {:.6} s: {detail}", at.as_secs_f64())]
pub struct SimFailure {
    /// Which promise.
    pub kind: FailureKind,
    /// When, by the simulated clock.
    pub at: Time,
    /// What was seen.
    pub detail: String,
}

/// Kinds of broken promises; of several, the first is the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureKind {
    /// A core panicked.
    Crash,
    /// An accepted job, or something that belongs to it, never came to its end.
    NeverEnded,
    /// What must always be true was not.
    Invariant,
    /// Two runs of one seed differed.
    Differs,
}

impl FailureKind {
    /// The exit code of the simulator.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            FailureKind::Crash => 1,
            FailureKind::NeverEnded => 2,
            FailureKind::Invariant => 3,
            FailureKind::Differs => 4,
        }
    }

    /// For scripts.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            FailureKind::Crash => "crash",
            FailureKind::NeverEnded => "never_ended",
            FailureKind::Invariant => "invariant",
            FailureKind::Differs => "differs",
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FailureKind::Crash => "a crash",
            FailureKind::NeverEnded => "something never ended",
            FailureKind::Invariant => "an invariant broke",
            FailureKind::Differs => "two runs differ",
        })
    }
}

/// Does this; a panic becomes a failure of the given kind.
pub(crate) fn guarded<T>(kind: FailureKind, at: Time, run: impl FnOnce() -> T) -> Result<T, SimFailure> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| SimFailure {
        kind,
        at,
        detail: message(panic.as_ref()),
    })
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message").to_owned()
}
