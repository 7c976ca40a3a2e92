//! Checks flags of a job that a script, or another program's options, ask for.

use clap::{Args as _, Command};

use crate::arguments::JobArguments;
use cohabit_console::usage_message;

/// Checks that these are flags of a job, with the parser of the command line.
pub(crate) fn check_flags(flags: &[String]) -> Result<(), String> {
    let reader =
        JobArguments::augment_args(Command::new("script").no_binary_name(true).disable_help_flag(true));
    match reader.try_get_matches_from(flags) {
        Ok(_) => Ok(()),
        Err(error) => Err(usage_message(&error)),
    }
}
