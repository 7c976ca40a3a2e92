//! The trait of all policies.

use crate::{Change, Plan, Prospect, View};

/// Decides which job starts when and where.
///
/// A policy may keep books of its own, led by the changes it is told; they are never saved. After a restart
/// of the head a new policy is told of everything that lives as changes, so those must be enough to go on.
pub trait Policy: Send {
    /// Takes note of changes, in their order; they are in the view already.
    fn learn(&mut self, view: &View, changes: &[Change]);

    /// Answers a view, all changes of which it was told. Must not depend on anything but the views and
    /// changes it was given.
    fn plan(&mut self, view: &View) -> Plan;

    /// What the pending jobs of a view have to expect, all changes of which it was told, in the order in
    /// which they may start.
    fn outlook(&mut self, view: &View) -> Vec<Prospect>;
}
