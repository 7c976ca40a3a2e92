//! Why a rank is stopped, in words that version 1 knows: a job that was killed was cancelled, and a field
//! that version 1 ignores says that it was killed. A part of an application, which version 1 does not start,
//! was cancelled, too.

use cohabit_types::StopReason;

/// The reason as version 1 knows it, and whether it is that of a kill.
pub(super) const fn split(why: StopReason) -> (StopReason, bool) {
    let killed = matches!(why, StopReason::Killed);
    (if killed { StopReason::Cancelled } else { why }, killed)
}

/// The reason that was split.
pub(super) const fn join(why: StopReason, killed: bool) -> StopReason {
    if killed { StopReason::Killed } else { why }
}
