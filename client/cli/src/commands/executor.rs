//! `executor`: holds ranks, one at a time; started by the worker daemon, not by people.

use std::process::ExitCode;

pub(super) fn executor() -> ExitCode {
    cohabit_executor::executor()
}
