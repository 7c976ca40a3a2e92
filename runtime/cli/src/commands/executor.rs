//! `executor`: holds one rank; started by the worker daemon, not by people.

use std::path::Path;
use std::process::ExitCode;

pub(super) fn executor(folder: &Path) -> ExitCode {
    cohabit_worker::executor(folder)
}
