//! A dry run that the policy has answered.

use cohabit_actor::ReplyTo;
use cohabit_policy::DryRunResult;
use cohabit_scheduler_core::DryRunJob;
use cohabit_types::{DryRun, Refusal};

/// The policy's answer for a job that was not submitted, on its way back to the driver.
#[derive(Debug)]
pub(crate) struct FinishedDryRun {
    pub(super) job: DryRunJob,
    /// The policy's answer, or why it gave none.
    pub(super) result: Result<DryRunResult, String>,
    pub(super) reply_to: ReplyTo<Result<Box<DryRun>, Refusal>>,
}
