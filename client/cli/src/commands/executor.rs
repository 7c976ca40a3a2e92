//! `executor`: runs ranks, one at a time. `copy-reader`: reads files of a job. Both are started by the worker
//! daemon, not by users.

use std::process::ExitCode;

use crate::arguments::Verb;

pub(super) fn run(verb: &Verb) -> ExitCode {
    match matches!(verb, Verb::CopyReader) {
        true => cohabit_executor::copy_reader(),
        false => cohabit_executor::executor(),
    }
}
