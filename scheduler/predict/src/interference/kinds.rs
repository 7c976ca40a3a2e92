//! The kinds of models by name: one line for each.

use super::gaussian::{ADDITIVE_KIND, GAUSSIAN_KIND};
use super::model::ModelKind;

/// Every kind, in the order in which they are told.
const KINDS: [&dyn ModelKind; 2] = [&ADDITIVE_KIND, &GAUSSIAN_KIND];

/// Names of all kinds.
pub const KIND_NAMES: [&str; 2] = ["additive", "gaussian"];

/// There is no kind of model of this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no model '{0}': there are {names}", names = KIND_NAMES.join(", "))]
pub struct UnknownKind(pub String);

/// The kind of this name.
///
/// # Errors
/// The names that there are.
pub fn kind_by_name(name: &str) -> Result<&'static dyn ModelKind, UnknownKind> {
    KINDS.into_iter().find(|kind| kind.name() == name).ok_or_else(|| UnknownKind(name.to_owned()))
}
