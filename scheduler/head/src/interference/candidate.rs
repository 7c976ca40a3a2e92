//! A model that was just fitted and may become a version.

use std::path::Path;
use std::sync::Arc;

use cohabit_policy::interference::Interference;

/// A fitted model that is not saved yet.
pub(super) trait CandidateModel {
    /// The kind of the model, as lists of versions show it.
    fn kind(&self) -> String;

    /// The model.
    fn model(&self) -> &dyn Interference;

    /// Saves it to a new directory. Returns the model to use from now on.
    ///
    /// # Errors
    /// Why it cannot be saved: the directory exists already, for example.
    fn save(self: Box<Self>, folder: &Path) -> Result<Arc<dyn Interference>, String>;
}
