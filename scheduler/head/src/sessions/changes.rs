//! Changes that clients ask for: each is a request to the core, and its reply the typed result of the call.

use std::collections::BTreeSet;

use cohabit_scheduler_core::SnapshotPart;
use cohabit_types::{
    Bytes, ChangeResult, DrainRequest, JobChange, JobId, JobSettings, JobSpec, NodeReservation, Refusal,
    RefusalCode, Reply, Request, ShareTable, Submit, SubmitReceipt, counted,
};

use super::client::{ClientSession, ending};
use crate::driver::{Message, Query};
use crate::history::ArchivedContent;
use crate::request_limits::check_ids;

/// What one request may bring back from the archive, as text.
const MOST_RESTORED: Bytes = Bytes(32 << 20);

impl ClientSession {
    /// Submits a job. The estimate of the head is not a client's to make.
    pub(super) async fn submit_job(
        self,
        mut spec: JobSpec,
        idempotency_key: Option<String>,
    ) -> Result<SubmitReceipt, Refusal> {
        if spec.checkpoint.is_none() {
            spec.checkpoint.clone_from(&self.session_context.checkpoint_directory);
        }
        let submit = Submit { spec, idempotency_key, estimate: None };
        self.request(Request::Submit(Box::new(submit)), |reply| match reply {
            Reply::Accepted { job, members, notes } => Ok(SubmitReceipt { job, members, notes }),
            other @ (Reply::Changed(_)
            | Reply::Node(_)
            | Reply::SharesApplied
            | Reply::Reservation(_)
            | Reply::Refused(_)) => Err(other),
        })
        .await
    }

    /// Changes these jobs, each once.
    pub(super) async fn apply_to_jobs(
        self,
        change: JobChange,
        mut jobs: Vec<JobId>,
    ) -> Result<Vec<(JobId, ChangeResult)>, Refusal> {
        check_ids(&jobs)?;
        let mut named = BTreeSet::new();
        jobs.retain(|job| named.insert(*job));
        self.change_jobs_by(Request::Change(change, jobs)).await
    }

    /// What a request needs of the archive: a job that is queued again has to be in memory.
    async fn archived_for(&self, request: &Request) -> Result<Vec<SnapshotPart>, Refusal> {
        let Request::Change(JobChange::Requeue, jobs) = request else { return Ok(Vec::new()) };
        let (by, jobs) = (self.by.clone(), jobs.clone());
        let numbers = self.ask(|reply_to| Query::Archived(by, jobs, reply_to)).await?;
        if numbers.is_empty() {
            return Ok(Vec::new());
        }
        let count = numbers.len();
        let archived = self.history(move |history| history.archived(&numbers, MOST_RESTORED)).await?;
        match archived {
            ArchivedContent::Submissions(submissions) => Ok(submissions),
            ArchivedContent::TooLarge => Err(Refusal::new(
                RefusalCode::NotAllowed,
                format!(
                    "{} archived, and to queue them again would bring more than {MOST_RESTORED} back into \
                     memory at once: name fewer, or submit them again",
                    counted(count, "of these jobs is", "of these jobs are")
                ),
            )),
        }
    }

    /// Changes the settings of these jobs, each once.
    pub(super) async fn update(
        self,
        update: JobSettings,
        mut jobs: Vec<JobId>,
    ) -> Result<Vec<(JobId, ChangeResult)>, Refusal> {
        check_ids(&jobs)?;
        let mut named = BTreeSet::new();
        jobs.retain(|job| named.insert(*job));
        self.change_jobs_by(Request::Update(update, jobs)).await
    }

    async fn change_jobs_by(self, request: Request) -> Result<Vec<(JobId, ChangeResult)>, Refusal> {
        self.request(request, |reply| match reply {
            Reply::Changed(results) => Ok(results),
            other @ (Reply::Accepted { .. }
            | Reply::Node(_)
            | Reply::SharesApplied
            | Reply::Reservation(_)
            | Reply::Refused(_)) => Err(other),
        })
        .await
    }

    pub(super) async fn drain(self, drain: DrainRequest) -> Result<String, Refusal> {
        self.change_node(Request::Drain(drain)).await
    }

    pub(super) async fn resume(self, name: String) -> Result<String, Refusal> {
        self.change_node(Request::Resume(name)).await
    }

    async fn change_node(self, request: Request) -> Result<String, Refusal> {
        self.request(request, |reply| match reply {
            Reply::Node(name) => Ok(name),
            other @ (Reply::Accepted { .. }
            | Reply::Changed(_)
            | Reply::SharesApplied
            | Reply::Reservation(_)
            | Reply::Refused(_)) => Err(other),
        })
        .await
    }

    pub(super) async fn apply_share_table(self, table: ShareTable) -> Result<(), Refusal> {
        self.request(Request::ApplyShares(Box::new(table)), |reply| match reply {
            Reply::SharesApplied => Ok(()),
            other @ (Reply::Accepted { .. }
            | Reply::Changed(_)
            | Reply::Node(_)
            | Reply::Reservation(_)
            | Reply::Refused(_)) => Err(other),
        })
        .await
    }

    pub(super) async fn change_reservation(self, request: Request) -> Result<Box<NodeReservation>, Refusal> {
        self.request(request, |reply| match reply {
            Reply::Reservation(reservation) => Ok(reservation),
            other @ (Reply::Accepted { .. }
            | Reply::Changed(_)
            | Reply::Node(_)
            | Reply::SharesApplied
            | Reply::Refused(_)) => Err(other),
        })
        .await
    }

    /// Asks the core for a change; `result` takes the result out of the reply that belongs to the request.
    async fn request<T>(
        self,
        request: Request,
        result: impl FnOnce(Reply) -> Result<T, Reply>,
    ) -> Result<T, Refusal> {
        self.session_context.limits.check(&request)?;
        // In a task of its own: it goes on when the client hangs up.
        let asked = tokio::spawn(async move {
            let _permit = match &request {
                Request::Change(..) | Request::Update(..) => {
                    self.session_context.changes.permit(&self.by.user).await
                }
                Request::Submit(_)
                | Request::Drain(_)
                | Request::Resume(_)
                | Request::ApplyShares(_)
                | Request::Reserve(_)
                | Request::CancelReservation(_) => None,
            };
            let _pin = self.pinned_code(&request).await?;
            let restored = self.archived_for(&request).await?;
            let by = self.by.clone();
            let message = |reply_to| Message::Request { by, request, restored, reply_to };
            self.session_context.driver.ask(message).await.map_err(|error| ending(&error))
        });
        let replied = asked.await.map_err(|error| Refusal::new(RefusalCode::Internal, error.to_string()))?;
        result(replied?).map_err(|other| match other {
            Reply::Refused(refusal) => refusal,
            // The core answers each request with its own reply: this is the one place that relies on it.
            Reply::Accepted { .. }
            | Reply::Changed(_)
            | Reply::Node(_)
            | Reply::SharesApplied
            | Reply::Reservation(_) => {
                let message = "the head answered another request than this: report this as a bug";
                Refusal::new(RefusalCode::Internal, message)
            }
        })
    }
}
