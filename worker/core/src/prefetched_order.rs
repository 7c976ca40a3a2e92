//! An attempt that was ordered in advance, and has not begun.

use cohabit_types::{AttemptId, RunOrder, Time};

/// An attempt that waits for the end of another one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PrefetchedOrder {
    pub(crate) order: RunOrder,
    /// The one that has to end.
    pub(crate) after: AttemptId,
    /// When it is given back.
    pub(crate) expires_at: Time,
}
