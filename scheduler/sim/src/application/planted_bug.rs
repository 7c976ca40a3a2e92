//! Bugs that can be planted around the cores of an application; the checks have to find each.

/// A planted bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApplicationBug {
    /// A release that overtakes its lend is cut off at zero.
    UnsignedCounters,
    /// The process of an actor takes repeated frames of a caller for new ones.
    RepetitionWithoutMemory,
    /// The next incarnation is constructed as soon as its process is there.
    EarlyRestart,
    /// After the end of a runner, its caller takes the tasks that it had got for tasks that were never sent.
    ForgottenHandover,
    /// Callers do not hear that tasks are parked, so that these keep their place in the window.
    ParkedInWindow,
    /// Callers do not hear which tasks a runner that ends has not started.
    LostReturn,
    /// A runner starts tasks beside those that run.
    ManySlots,
    /// The next runner of a stream does not hear which items have arrived, and sends all again.
    RepeatedItems,
    /// The coordinator takes reports of blocked runners for granted, and does not hear that they go on.
    StaleBlocks,
    /// Makers of streams do not ask whether they may make the next item.
    UnboundedStream,
    /// Makers of streams that have paused do not hear that they may go on.
    LostMakeMore,
    /// The coordinator does not hear that the call of a shared reference has ended.
    LostResolve,
    /// What a process has stored goes with it, whoever holds it.
    FreedWithMaker,
    /// What a process has stored and told nobody of stays when it has ended.
    ForgottenMaker,
    /// The coordinator forgets where an object is when a copy of it is made.
    LostPlace,
    /// The coordinator takes fetches for done as soon as they begin, and a source serves too many.
    UncountedFetches,
    /// An actor of a node that is silent is started again at once.
    EarlyActorRestart,
    /// The coordinator does not hear how objects can be made again.
    ForgottenLineage,
    /// Copies are not freed.
    CopyKeptAfterFree,
}
