//! Opens the files that a simulation reads.

use std::fs::File;
use std::path::Path;

use cohabit_console::{CommandError, CommandErrorKind};

pub(super) fn open_file(path: &Path) -> Result<File, CommandError> {
    File::open(path).map_err(|error| {
        CommandError::new(CommandErrorKind::NotFound, format!("cannot open {}: {error}", path.display()))
    })
}
