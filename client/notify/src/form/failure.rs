//! Why a message was not delivered, and whether to try again.

use std::time::Duration;

/// Why a message was not delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DeliveryFailure {
    /// It may be delivered later.
    Later {
        why: String,
        /// Not before this time, as the receiver asks.
        after: Option<Duration>,
    },
    /// The receiver will never take this message.
    Never(String),
}

impl DeliveryFailure {
    pub(crate) fn why(&self) -> &str {
        match self {
            DeliveryFailure::Later { why, .. } | DeliveryFailure::Never(why) => why,
        }
    }
}
