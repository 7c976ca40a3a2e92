//! Bugs that can be planted around the production cores, one of each class that must never occur. The
//! checkers have to find every one.

/// A planted bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlantedBug {
    /// A worker drops the end of a rank as if the head had acknowledged it, and never reports it.
    LostReport,
    /// An order to run is sent to a second machine as well.
    DoubledAttempt,
    /// A restarted head believes that a free device is in use.
    LeakedSlot,
    /// A restarted head does not know a job that it had accepted.
    ForgottenJob,
    /// The end of an earlier attempt is taken for the end of the current one.
    UnfencedReport,
}
