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
    /// A plan reclaims a job of a user who holds no more than is due to them.
    VictimBelowPart,
    /// A restarted head believes that a user holds more than their jobs do.
    DoubleCharge,
    /// A restarted head does not know which nodes are reserved.
    ForgottenReservation,
    /// A plan stops a job as idle although it works.
    StoppedWork,
    /// A restarted head believes that jobs do nothing.
    BelievedIdle,
    /// The policy does not know how long a job has to run before it may be stopped.
    IgnoredQuantum,
    /// The policy is not told that a job which has run waits again.
    LostVictim,
    /// The shell takes everybody for an admin.
    TrustedEverybody,
    /// The shell takes a report from whoever sends it for one of the worker that holds the rank.
    BelievedImpostor,
    /// No watchdog ends what a killed executor leaves.
    NoWatchdog,
    /// Executors count from when they hear of the head, and not from when it could be reached.
    UndatedLeases,
    /// A daemon does not kill an executor that does not end its rank.
    SparedExecutor,
    /// An executor that goes on looks at its timer before it looks whether its rank has ended.
    LateReap,
    /// A start that fails because of its machine is reported as the fault of the job.
    BlamedJob,
    /// A worker opens no link while its disk is full.
    LinkNeedsDisk,
    /// The head lets no worker in while its journal is full.
    WelcomeNeedsJournal,
    /// Executors count their time by a clock that can be set.
    WallClockLeases,
    /// The head is not told when the policy wants to be asked again.
    ForgottenWake,
    /// A job that is archived again stays in the archive as it was the first time.
    StaleArchive,
    /// A worker daemon says that code is there which is not.
    UnfetchedCode,
    /// A worker daemon does not remove the copies of code of attempts that have ended.
    KeptCopies,
    /// The head takes a change of what a job holds for done when it has ordered it.
    GrantBeforeShrink,
    /// The head lets members of arrays take places without a plan, although it was told to plan each start.
    UnaskedSuccession,
    /// A worker begins what it was ordered in advance before it may.
    ImpatientWorker,
    /// A worker does not tell that it has given back what it was ordered in advance.
    KeptPrefetch,
}
