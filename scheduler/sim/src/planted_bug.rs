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
    /// A plan stops a job for another although it may not be stopped.
    UnwillingVictim,
    /// A plan stops a job for another although it was started because it had waited too long.
    LaneVictim,
    /// The policy does not know how long a job has to run before it may be stopped.
    IgnoredQuantum,
    /// The policy is not told that a job which has run waits again.
    LostVictim,
    /// The shell takes everybody for an admin.
    TrustedEverybody,
    /// The shell takes a report from whoever sends it for one of the worker that holds the rank.
    BelievedImpostor,
    /// The head is not told when the policy wants to be asked again.
    ForgottenWake,
}
