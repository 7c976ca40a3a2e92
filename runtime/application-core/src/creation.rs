//! Actors on their way into being, at the process that creates them.

use crate::held::HeldId;

/// Actors that the coordinator was asked for.
#[derive(Debug, Default)]
pub(crate) struct Creation {
    /// How many.
    pub(crate) actors: u32,
    /// The handles in the arguments of their constructors, which the process holds until they have arrived.
    pub(crate) carries: Vec<HeldId>,
}
