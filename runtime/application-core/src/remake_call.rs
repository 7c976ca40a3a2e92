//! A call that makes a lost object again.

use crate::ids::ObjectId;

/// What a call of a process makes again, for the coordinator.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RemakeCall {
    pub(crate) object: ObjectId,
    /// Which of the coordinator's requests it answers.
    pub(crate) remake: u32,
}
