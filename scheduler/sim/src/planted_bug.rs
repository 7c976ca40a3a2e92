//! Bugs that are planted around the production cores, one of each class that must never be: whoever watches
//! the cluster has to catch them.

/// A bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlantedBug {
    /// A worker forgets the end of a rank as if the head had acknowledged it, and never tells.
    LostReport,
    /// An order to run goes to another machine, too.
    DoubledAttempt,
    /// A head that comes back believes that somebody holds a device.
    LeakedSlot,
    /// A head that comes back does not know a job that it had accepted.
    ForgottenJob,
    /// How an earlier attempt ended is taken for the end of the present one.
    UnfencedReport,
}
