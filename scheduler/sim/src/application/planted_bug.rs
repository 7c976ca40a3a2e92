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
}
