//! Policies by the names that users write.

use crate::{Fifo, FirstFit, Pipeline, Policy};

/// Every name that [`policy_by_name`] knows.
pub const POLICY_NAMES: [&str; 1] = ["fifo"];

/// A name that no policy has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownPolicy(pub String);

impl std::fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "there is no policy '{}': use one of {}", self.0, POLICY_NAMES.join(", "))
    }
}

impl std::error::Error for UnknownPolicy {}

/// A new policy of this name.
///
/// # Errors
/// The name, if no policy has it.
pub fn policy_by_name(name: &str) -> Result<Box<dyn Policy>, UnknownPolicy> {
    match name {
        "fifo" => Ok(Box::new(Pipeline::new(Fifo, FirstFit))),
        _ => Err(UnknownPolicy(name.to_owned())),
    }
}
