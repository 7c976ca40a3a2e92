//! The failures of a simulated cluster, with their exit codes.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use cohabit_types::Time;

/// A failure of a simulated cluster.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at {:.6} s: {detail}", at.as_secs_f64())]
pub struct SimFailure {
    /// What failed.
    pub kind: FailureKind,
    /// When, by the simulated clock.
    pub at: Time,
    /// What was found.
    pub detail: String,
}

/// The kinds of failures; of several, the first is the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureKind {
    /// A production core panicked.
    Crash,
    /// An accepted job, or something that belongs to it, never ended.
    NeverEnded,
    /// An invariant was violated.
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

    /// The name for scripts.
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
            FailureKind::Invariant => "an invariant was violated",
            FailureKind::Differs => "two runs differ",
        })
    }
}

/// Runs a function; a panic becomes a failure of this kind.
pub(crate) fn guarded<T>(kind: FailureKind, at: Time, run: impl FnOnce() -> T) -> Result<T, SimFailure> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| SimFailure {
        kind,
        at,
        detail: panic_message(panic.as_ref()),
    })
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("panic without a message").to_owned()
}
