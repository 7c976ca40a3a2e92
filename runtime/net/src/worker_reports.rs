//! Calls of a worker to its head, in the protocol of the head: whoever makes them sees only today's.

use cohabit_types::{
    CheckpointPiece, CheckpointRequest, CodeRequest, ContentPiece, Refusal, RefusalCode, Report,
};
use cohabit_wire::{HeadServiceClient, v4};
use tarpc::client::RpcError;
use tarpc::context::Context;

/// Calls to the head. All clones share one link.
#[derive(Debug, Clone)]
pub struct WorkerReports(VersionedClient);

#[derive(Debug, Clone)]
enum VersionedClient {
    V4(v4::HeadServiceClient),
    V5(HeadServiceClient),
}

impl WorkerReports {
    /// What happened, in order; comes back when the head has taken it in.
    ///
    /// # Errors
    /// When the link has ended, or the head does not answer in time.
    pub async fn report(&self, context: Context, reports: Vec<Report>) -> Result<(), RpcError> {
        match &self.0 {
            VersionedClient::V4(head) => {
                head.report(context, reports.into_iter().filter_map(v4::Report::of).collect()).await
            }
            VersionedClient::V5(head) => head.report(context, reports).await,
        }
    }

    /// The worker is there.
    ///
    /// # Errors
    /// As for [`WorkerReports::report`].
    pub async fn heartbeat(&self, context: Context) -> Result<(), RpcError> {
        match &self.0 {
            VersionedClient::V4(head) => head.heartbeat(context).await,
            VersionedClient::V5(head) => head.heartbeat(context).await,
        }
    }

    /// A piece of the code of a job that has a rank on this worker. A head of protocol 4 stores none.
    ///
    /// # Errors
    /// As for [`WorkerReports::report`].
    pub async fn read_code(
        &self,
        context: Context,
        request: CodeRequest,
    ) -> Result<Result<ContentPiece, Refusal>, RpcError> {
        match &self.0 {
            VersionedClient::V4(_) => {
                let message = "the head is too old for snapshots of code: upgrade it";
                Ok(Err(Refusal::new(RefusalCode::Invalid, message)))
            }
            VersionedClient::V5(head) => head.read_code(context, request).await,
        }
    }

    /// A piece of the checkpoints of a job that are on another node, for an attempt that is to start here. A
    /// head of protocol 4 carries none.
    ///
    /// # Errors
    /// As for [`WorkerReports::report`].
    pub async fn read_checkpoints(
        &self,
        context: Context,
        request: CheckpointRequest,
    ) -> Result<Result<CheckpointPiece, Refusal>, RpcError> {
        match &self.0 {
            VersionedClient::V4(_) => {
                let message = "the head is too old to carry checkpoints: upgrade it";
                Ok(Err(Refusal::new(RefusalCode::Invalid, message)))
            }
            VersionedClient::V5(head) => head.read_checkpoints(context, request).await,
        }
    }
}

impl From<v4::HeadServiceClient> for WorkerReports {
    fn from(client: v4::HeadServiceClient) -> WorkerReports {
        WorkerReports(VersionedClient::V4(client))
    }
}

impl From<HeadServiceClient> for WorkerReports {
    fn from(client: HeadServiceClient) -> WorkerReports {
        WorkerReports(VersionedClient::V5(client))
    }
}
