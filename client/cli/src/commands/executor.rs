//! `executor`: runs ranks, one at a time. Started by the worker daemon, not by users.

use std::process::ExitCode;

pub(super) fn executor() -> ExitCode {
    cohabit_executor::executor()
}
