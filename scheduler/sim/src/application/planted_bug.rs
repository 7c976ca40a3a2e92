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
}
