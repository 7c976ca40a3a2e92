//! Changes that clients ask for: each is a request to the core, and its reply the typed result of the call.

use std::collections::BTreeSet;

use cohabit_types::{
    ChangeResult, JobChange, JobId, JobSpec, Refusal, RefusalCode, Reply, Request, Submit, SubmitReceipt,
};

use super::client::{ClientSession, ending};
use crate::driver::Message;
use crate::request_limits::check_ids;

impl ClientSession {
    /// Submits a job. The estimate of the head is not a client's to make.
    pub(super) async fn submit_job(
        self,
        spec: JobSpec,
        idempotency_key: Option<String>,
    ) -> Result<SubmitReceipt, Refusal> {
        let submit = Submit { spec, idempotency_key, estimate: None };
        self.request(Request::Submit(Box::new(submit)), |reply| match reply {
            Reply::Accepted { job, members } => Ok(SubmitReceipt { job, members }),
            other @ (Reply::Changed(_) | Reply::Node(_) | Reply::Refused(_)) => Err(other),
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
        self.request(Request::Change(change, jobs), |reply| match reply {
            Reply::Changed(results) => Ok(results),
            other @ (Reply::Accepted { .. } | Reply::Node(_) | Reply::Refused(_)) => Err(other),
        })
        .await
    }

    pub(super) async fn drain(self, name: String) -> Result<String, Refusal> {
        self.change_node(Request::Drain(name)).await
    }

    pub(super) async fn resume(self, name: String) -> Result<String, Refusal> {
        self.change_node(Request::Resume(name)).await
    }

    async fn change_node(self, request: Request) -> Result<String, Refusal> {
        self.request(request, |reply| match reply {
            Reply::Node(name) => Ok(name),
            other @ (Reply::Accepted { .. } | Reply::Changed(_) | Reply::Refused(_)) => Err(other),
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
        let ClientSession { session_context, by } = self;
        // In a task of its own: it goes on when the client hangs up.
        let asked = tokio::spawn(async move {
            let _permit = match &request {
                Request::Change(..) => session_context.changes.permit(&by.user).await,
                Request::Submit(_) | Request::Drain(_) | Request::Resume(_) => None,
            };
            session_context.driver.ask(|reply_to| Message::Request { by, request, reply_to }).await
        });
        let replied = asked.await.map_err(|error| Refusal::new(RefusalCode::Internal, error.to_string()))?;
        result(replied.map_err(|error| ending(&error))?).map_err(|other| match other {
            Reply::Refused(refusal) => refusal,
            // The core answers each request with its own reply: this is the one place that relies on it.
            Reply::Accepted { .. } | Reply::Changed(_) | Reply::Node(_) => {
                let message = "the head answered another request than this: report this as a bug";
                Refusal::new(RefusalCode::Internal, message)
            }
        })
    }
}
