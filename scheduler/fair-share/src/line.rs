//! The jobs of one user whose turn comes together.

use cohabit_types::Qos;

use crate::parties::Party;

/// The jobs of a user with one quality of service.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Line {
    /// The user.
    pub party: Party,
    /// Those of low quality of service come last, and those of high quality of service as if their user and
    /// the project held half as much.
    pub qos: Qos,
}
