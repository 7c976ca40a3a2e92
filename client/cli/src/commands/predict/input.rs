//! What a command of `predict` reads: measurements, and models from their folders.

use std::fs::File;
use std::path::Path;

use cohabit_predict::interference::{MeasuredSet, StoreError, Stored, pretrained, read};

use crate::arguments::DataArguments;
use crate::failure::{Failure, Trouble};

/// The measured sets.
pub(super) fn measurements(arguments: &DataArguments) -> Result<Vec<MeasuredSet>, Failure> {
    let path = &arguments.data;
    let file = File::open(path).map_err(|error| {
        Failure::new(Trouble::NotFound, format!("cannot open {}: {error}", path.display()))
    })?;
    read(file, arguments.format).map_err(|error| {
        Failure::new(Trouble::Impossible("unusable_data"), format!("{}: {error}", path.display()))
    })
}

/// The folder that stands for the model that comes with the program.
const PRETRAINED: &str = "pretrained";

/// The model in this folder, or the one that comes with the program.
pub(in crate::commands) fn model(folder: &Path) -> Result<Stored, Failure> {
    let stored = if folder == Path::new(PRETRAINED) { pretrained() } else { Stored::load(folder) };
    stored.map_err(|error| unusable(&error))
}

/// A folder that is no usable model.
pub(super) fn unusable(error: &StoreError) -> Failure {
    let trouble = match error {
        StoreError::File { what: "read", .. } => Trouble::NotFound,
        StoreError::File { .. } | StoreError::Unwritable(_) => Trouble::InputOutput,
        StoreError::Card { .. }
        | StoreError::Schema { .. }
        | StoreError::Kind(_)
        | StoreError::Weights { .. } => Trouble::Impossible("unusable_model"),
    };
    Failure::from_error(trouble, error)
}
