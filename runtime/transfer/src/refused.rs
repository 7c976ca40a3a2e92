//! What is there, but not sent.

use crate::entry::TransferFailure;

/// Why something is not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) kind: TransferFailure,
    /// A sentence that begins with "it".
    pub(crate) why: String,
}

impl Refused {
    pub(crate) const fn special(why: String) -> Refused {
        Refused { kind: TransferFailure::SpecialFile, why }
    }
}
