//! Reads measurements.

use std::fs::File;

use cohabit_console::{CommandError, CommandErrorKind};
use cohabit_predict::interference::{ColocationTable, read};

use crate::predict::arguments::DataArguments;

/// Reads the measured sets; the first line tells their format if --format does not.
pub(super) fn measurements(arguments: &DataArguments) -> Result<ColocationTable, CommandError> {
    let path = &arguments.data;
    let file = File::open(path).map_err(|error| {
        CommandError::new(CommandErrorKind::NotFound, format!("cannot open {}: {error}", path.display()))
    })?;
    read(file, arguments.format).map_err(|error| {
        CommandError::new(
            CommandErrorKind::Impossible("unusable_data"),
            format!("{}: {error}", path.display()),
        )
    })
}
