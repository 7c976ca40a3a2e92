//! Trained models of interference in their directories, and the one that comes with the program.

use std::path::Path;

use cohabit_console::{CommandError, CommandErrorKind};
use cohabit_predict::interference::{StoreError, StoredModel, pretrained};
use cohabit_predict::{FileAction, StoredFileError};

/// The name of the model that comes with the program.
const PRETRAINED: &str = "pretrained";

/// Loads the model in a directory, or the one that comes with the program.
pub(crate) fn load_model(folder: &Path) -> Result<StoredModel, CommandError> {
    let stored = if folder == Path::new(PRETRAINED) { pretrained() } else { StoredModel::load(folder) };
    stored.map_err(|error| unusable(&error))
}

/// The error of a directory that holds no usable model.
pub(crate) fn unusable(error: &StoreError) -> CommandError {
    let kind = match error {
        StoreError::File(StoredFileError { action: FileAction::Read, .. }) => CommandErrorKind::NotFound,
        StoreError::File(StoredFileError { action: FileAction::Write | FileAction::Create, .. })
        | StoreError::Unwritable(_) => CommandErrorKind::InputOutput,
        StoreError::ModelCard { .. }
        | StoreError::Schema { .. }
        | StoreError::Kind(_)
        | StoreError::Weights { .. } => CommandErrorKind::Impossible("unusable_model"),
    };
    CommandError::from_error(kind, error)
}
