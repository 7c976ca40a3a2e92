//! The trait of all policies.

use cohabit_proto::{JobId, Time};

use crate::{Plan, View};

/// Something that happened, told in order between two plans.
///
/// Facts let a policy keep its own books without scanning the view. They are hints: after a restart of the
/// head a policy hears only `Submitted` and `Placed` for the jobs that live, so the view must be enough to go
/// on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact {
    /// A job became known.
    Submitted(JobId),
    /// A job was given devices.
    Placed(JobId),
    /// A job lost or left its devices and waits again.
    Requeued(JobId),
    /// A job ended.
    Ended(JobId),
}

/// Decides which job starts when and where.
pub trait Policy: Send {
    /// Takes note of a fact.
    fn observe(&mut self, now: Time, fact: &Fact);

    /// Answers a view. Must not depend on anything but the facts and views it was given.
    fn plan(&mut self, view: &View) -> Plan;
}
