//! Arguments that have come, before what they need is here.

use bytes::Bytes;
use cohabit_application_core::{HeldId, ObjectId};

/// Arguments as they have come.
#[derive(Debug)]
pub(crate) struct ArrivedArguments {
    pub(crate) bytes: Bytes,
    /// References whose values are to be had first.
    pub(crate) needs: Vec<ObjectId>,
    /// Handles in them, which the process holds once more for them.
    pub(crate) carries: Vec<HeldId>,
}
