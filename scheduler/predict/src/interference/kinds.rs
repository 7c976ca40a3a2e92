//! The kinds of models by name: one line for each.

use super::gaussian::{ADDITIVE_KIND, GAUSSIAN_KIND};
use super::low_rank::LowRankKind;
use super::model::ModelKind;
use super::networks::{E_GGAT_KIND, E_GGAT_PLUS_KIND, IAPP_KIND};

/// Every kind, in the order in which they are listed.
const KINDS: &[&dyn ModelKind] =
    &[&ADDITIVE_KIND, &LowRankKind, &GAUSSIAN_KIND, E_GGAT_KIND, E_GGAT_PLUS_KIND, IAPP_KIND];

/// An unknown name of a kind of model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown kind of model '{0}': the kinds are {names}", names = kind_names().join(", "))]
pub struct UnknownModelKind(pub String);

/// The names of all kinds.
#[must_use]
pub fn kind_names() -> Vec<&'static str> {
    KINDS.iter().map(|kind| kind.name()).collect()
}

/// The kind with this name.
///
/// # Errors
///
/// The known names, if there is none.
pub fn kind_by_name(name: &str) -> Result<&'static dyn ModelKind, UnknownModelKind> {
    KINDS.iter().copied().find(|kind| kind.name() == name).ok_or_else(|| UnknownModelKind(name.to_owned()))
}
