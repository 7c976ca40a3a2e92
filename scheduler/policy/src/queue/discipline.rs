//! What happens to the jobs behind one that does not fit.

/// What happens to the jobs behind one that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Discipline {
    /// They wait, so that no large job starves. Only a job that the present nodes could not hold even when
    /// empty is passed over.
    Strict,
    /// They may pass.
    WorkConserving,
    /// They may pass as long as the first job that does not fit starts no later, judged by expected runtimes:
    /// EASY backfill.
    Backfill,
}
