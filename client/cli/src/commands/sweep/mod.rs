//! `sweep`: trains with many parameters, as one array, stops members early, and shows how they compare.
//!
//! The head keeps everything that is needed to show a sweep and to go on with its rule: the parameters of
//! each member are its entry, and the rule is part of the specification. So each of these commands works from
//! any machine, and nothing is lost with the one that was interrupted.

mod follow;
mod members;
mod reference;
mod show;
mod submit;

use std::process::ExitCode;

use cohabit_console::CommandError;

use crate::arguments::{SweepArguments, SweepVerb};
use crate::script::Script;

pub(super) async fn sweep(
    arguments: SweepArguments,
    script: Option<Script>,
) -> Result<ExitCode, CommandError> {
    match arguments.verb {
        Some(SweepVerb::Show(arguments)) => show::show(arguments).await,
        Some(SweepVerb::Resume(arguments)) => follow::resume(arguments).await,
        None => submit::submit(arguments.submission, script).await,
    }
}
