//! How urgent a job is, by what it has had of the cluster and what it still needs.

use cohabit_types::Span;

use super::AttainedService;
use crate::Profile;

/// An order that changes while jobs run. While a job waits, its urgency does not change.
pub(crate) trait Urgency: Send {
    /// The smaller, the more urgent. It must not depend on where the job runs, or two jobs could preempt
    /// each other in turns.
    fn measure(&self, profile: &Profile, service: AttainedService) -> u128;

    /// How much longer the job may run until it becomes less urgent; `None` if it never does.
    fn time_until_demotion(&self, profile: &Profile, service: AttainedService) -> Option<Span>;

    /// Why a job is urgent, as the end of the sentence "makes room for job 7, which …".
    fn claim(&self) -> &'static str;
}
