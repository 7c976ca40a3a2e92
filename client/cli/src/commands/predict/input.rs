//! What a command of `predict` reads: measurements, and models from their folders.

use std::fs::File;
use std::path::Path;

use cohabit_predict::interference::{MeasuredSet, StoreError, StoredModel, pretrained, read};

use crate::arguments::DataArguments;
use crate::failure::{CommandError, CommandErrorKind};

/// The measured sets.
pub(super) fn measurements(arguments: &DataArguments) -> Result<Vec<MeasuredSet>, CommandError> {
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

/// The folder that stands for the model that comes with the program.
const PRETRAINED: &str = "pretrained";

/// The model in this folder, or the one that comes with the program.
pub(in crate::commands) fn model(folder: &Path) -> Result<StoredModel, CommandError> {
    let stored = if folder == Path::new(PRETRAINED) { pretrained() } else { StoredModel::load(folder) };
    stored.map_err(|error| unusable(&error))
}

/// A folder that is no usable model.
pub(super) fn unusable(error: &StoreError) -> CommandError {
    let trouble = match error {
        StoreError::File { what: "read", .. } => CommandErrorKind::NotFound,
        StoreError::File { .. } | StoreError::Unwritable(_) => CommandErrorKind::InputOutput,
        StoreError::ModelCard { .. }
        | StoreError::Schema { .. }
        | StoreError::Kind(_)
        | StoreError::Weights { .. } => CommandErrorKind::Impossible("unusable_model"),
    };
    CommandError::from_error(trouble, error)
}
