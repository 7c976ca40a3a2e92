//! How urgent a job is by what it has had of the cluster and what it still needs.

use cohabit_types::Span;

use super::AttainedService;
use crate::Profile;

/// An order that changes while jobs run. While a job waits, its urgency stays as it is.
pub(crate) trait Urgency: Send {
    /// The smaller, the more urgent. It must not depend on the place where the job runs, or two jobs could
    /// push each other out in turn.
    fn measure(&self, profile: &Profile, service: AttainedService) -> u128;

    /// In how much more of running time a job gets less urgent; nothing if it never does again.
    fn time_until_demotion(&self, profile: &Profile, service: AttainedService) -> Option<Span>;

    /// What makes a job urgent, to end the sentence "it makes room for a job that …".
    fn claim(&self) -> &'static str;
}
