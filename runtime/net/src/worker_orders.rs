//! Calls of a head to a worker, in the protocol of the worker's hello: whoever makes them sees only today's.

use cohabit_types::{
    CheckpointPiece, CheckpointQuery, CopyId, CopyPiece, CopyRead, ExecId, ExecOutput, ExecRead, ExecRequest,
    FileCopyOrder, ForwardId, ForwardOutput, ForwardPiece, ForwardRead, ForwardRequest, InputPiece, LogChunk,
    LogRequest, MetricSeries, Order, RankId, Refusal, RefusalCode,
};
use cohabit_wire::{WorkerServiceClient, v4};
use tarpc::client::RpcError;
use tarpc::context::Context;

/// Calls to a worker. All clones share one link.
#[derive(Debug, Clone)]
pub struct WorkerOrders(VersionedClient);

#[derive(Debug, Clone)]
enum VersionedClient {
    V4(v4::WorkerServiceClient),
    V5(WorkerServiceClient),
}

impl WorkerOrders {
    /// What to do, in order; comes back when the worker has taken it in.
    ///
    /// # Errors
    /// When the link has ended, or the worker does not answer in time.
    pub async fn order(&self, context: Context, orders: Vec<Order>) -> Result<(), RpcError> {
        match &self.0 {
            VersionedClient::V4(worker) => {
                worker.order(context, orders.into_iter().filter_map(v4::Order::of).collect()).await
            }
            VersionedClient::V5(worker) => worker.order(context, orders).await,
        }
    }

    /// A piece of the output of a rank; a long poll at its end.
    ///
    /// # Errors
    /// As for [`WorkerOrders::order`]. A refusal of the worker is part of its answer.
    pub async fn read_log(
        &self,
        context: Context,
        request: LogRequest,
    ) -> Result<Result<LogChunk, Refusal>, RpcError> {
        match &self.0 {
            VersionedClient::V4(worker) => {
                worker.read_log(context, request).await.map(|answer| answer.map_err(Refusal::from))
            }
            VersionedClient::V5(worker) => worker.read_log(context, request).await,
        }
    }

    /// The metrics of a rank over its steps. A worker of protocol 4 keeps none.
    ///
    /// # Errors
    /// As for [`WorkerOrders::read_log`].
    pub async fn read_metrics(
        &self,
        context: Context,
        rank: RankId,
    ) -> Result<Result<MetricSeries, Refusal>, RpcError> {
        match &self.0 {
            VersionedClient::V4(_) => {
                let message =
                    format!("the worker of {rank} is of release 0.1, which keeps no metrics: upgrade it");
                Ok(Err(Refusal::new(RefusalCode::NotFound, message)))
            }
            VersionedClient::V5(worker) => worker.read_metrics(context, rank).await,
        }
    }

    /// A piece of the input of a rank. A worker of protocol 4 takes none.
    ///
    /// # Errors
    /// As for [`WorkerOrders::read_log`].
    pub async fn write_input(
        &self,
        context: Context,
        piece: InputPiece,
    ) -> Result<Result<u64, Refusal>, RpcError> {
        match &self.0 {
            VersionedClient::V4(_) => {
                let message = format!(
                    "the worker of {} is of release 0.1, on which jobs read no input: upgrade it",
                    piece.rank
                );
                Ok(Err(Refusal::new(RefusalCode::WrongState, message)))
            }
            VersionedClient::V5(worker) => worker.write_input(context, piece).await,
        }
    }

    /// Starts a further process beside a rank. A worker of protocol 4 starts none.
    ///
    /// # Errors
    /// As for [`WorkerOrders::read_log`].
    pub async fn start_exec(
        &self,
        context: Context,
        request: Box<ExecRequest>,
    ) -> Result<Result<(), Refusal>, RpcError> {
        match &self.0 {
            VersionedClient::V4(_) => Ok(Err(no_execs())),
            VersionedClient::V5(worker) => worker.start_exec(context, request).await,
        }
    }

    /// A piece of the output of a further process; a long poll at its end.
    ///
    /// # Errors
    /// As for [`WorkerOrders::read_log`].
    pub async fn read_exec(
        &self,
        context: Context,
        read: ExecRead,
    ) -> Result<Result<ExecOutput, Refusal>, RpcError> {
        match &self.0 {
            VersionedClient::V4(_) => Ok(Err(no_execs())),
            VersionedClient::V5(worker) => worker.read_exec(context, read).await,
        }
    }

    /// Ends a further process.
    ///
    /// # Errors
    /// As for [`WorkerOrders::read_log`].
    pub async fn end_exec(&self, context: Context, process: ExecId) -> Result<Result<(), Refusal>, RpcError> {
        match &self.0 {
            VersionedClient::V4(_) => Ok(Err(no_execs())),
            VersionedClient::V5(worker) => worker.end_exec(context, process).await,
        }
    }

    /// Opens a connection to a port of a job. A worker of protocol 4 opens none.
    ///
    /// # Errors
    /// As for [`WorkerOrders::read_log`].
    pub async fn open_forward(
        &self,
        context: Context,
        request: ForwardRequest,
    ) -> Result<Result<(), Refusal>, RpcError> {
        match &self.0 {
            VersionedClient::V4(_) => Ok(Err(no_forwards())),
            VersionedClient::V5(worker) => worker.open_forward(context, request).await,
        }
    }

    /// Bytes from the server of a connection; a long poll where there are none.
    ///
    /// # Errors
    /// As for [`WorkerOrders::read_log`].
    pub async fn read_forward(
        &self,
        context: Context,
        read: ForwardRead,
    ) -> Result<Result<ForwardOutput, Refusal>, RpcError> {
        match &self.0 {
            VersionedClient::V4(_) => Ok(Err(no_forwards())),
            VersionedClient::V5(worker) => worker.read_forward(context, read).await,
        }
    }

    /// Bytes to the server of a connection.
    ///
    /// # Errors
    /// As for [`WorkerOrders::read_log`].
    pub async fn write_forward(
        &self,
        context: Context,
        piece: ForwardPiece,
    ) -> Result<Result<u64, Refusal>, RpcError> {
        match &self.0 {
            VersionedClient::V4(_) => Ok(Err(no_forwards())),
            VersionedClient::V5(worker) => worker.write_forward(context, piece).await,
        }
    }

    /// Closes a connection.
    ///
    /// # Errors
    /// As for [`WorkerOrders::read_log`].
    pub async fn close_forward(
        &self,
        context: Context,
        connection: ForwardId,
    ) -> Result<Result<(), Refusal>, RpcError> {
        match &self.0 {
            VersionedClient::V4(_) => Ok(Err(no_forwards())),
            VersionedClient::V5(worker) => worker.close_forward(context, connection).await,
        }
    }

    /// Begins to copy files of a job. A worker of protocol 4 copies none.
    ///
    /// # Errors
    /// As for [`WorkerOrders::read_log`].
    pub async fn start_copy(
        &self,
        context: Context,
        order: Box<FileCopyOrder>,
    ) -> Result<Result<(), Refusal>, RpcError> {
        match &self.0 {
            VersionedClient::V4(_) => Ok(Err(no_copies())),
            VersionedClient::V5(worker) => worker.start_copy(context, order).await,
        }
    }

    /// Bytes of a copy; a long poll where there are none.
    ///
    /// # Errors
    /// As for [`WorkerOrders::read_log`].
    pub async fn read_copy(
        &self,
        context: Context,
        read: CopyRead,
    ) -> Result<Result<CopyPiece, Refusal>, RpcError> {
        match &self.0 {
            VersionedClient::V4(_) => Ok(Err(no_copies())),
            VersionedClient::V5(worker) => worker.read_copy(context, read).await,
        }
    }

    /// Ends a copy.
    ///
    /// # Errors
    /// As for [`WorkerOrders::read_log`].
    pub async fn end_copy(&self, context: Context, copy: CopyId) -> Result<Result<(), Refusal>, RpcError> {
        match &self.0 {
            VersionedClient::V4(_) => Ok(Err(no_copies())),
            VersionedClient::V5(worker) => worker.end_copy(context, copy).await,
        }
    }

    /// A piece of the checkpoints of a job that the worker keeps. One of protocol 4 gives none away.
    ///
    /// # Errors
    /// As for [`WorkerOrders::read_log`].
    pub async fn read_checkpoints(
        &self,
        context: Context,
        query: CheckpointQuery,
    ) -> Result<Result<CheckpointPiece, Refusal>, RpcError> {
        match &self.0 {
            VersionedClient::V4(_) => {
                let message = "its worker is of release 0.1, which carries no checkpoints: upgrade it";
                Ok(Err(Refusal::new(RefusalCode::Unavailable, message)))
            }
            VersionedClient::V5(worker) => worker.read_checkpoints(context, query).await,
        }
    }
}

fn no_execs() -> Refusal {
    let message = "its worker is of release 0.1, which starts no processes beside jobs: upgrade it";
    Refusal::new(RefusalCode::WrongState, message)
}

fn no_forwards() -> Refusal {
    let message = "its worker is of release 0.1, which opens no connections to ports of jobs: upgrade it";
    Refusal::new(RefusalCode::WrongState, message)
}

fn no_copies() -> Refusal {
    let message = "its worker is of release 0.1, which copies no files of jobs: upgrade it";
    Refusal::new(RefusalCode::WrongState, message)
}

impl From<v4::WorkerServiceClient> for WorkerOrders {
    fn from(client: v4::WorkerServiceClient) -> WorkerOrders {
        WorkerOrders(VersionedClient::V4(client))
    }
}

impl From<WorkerServiceClient> for WorkerOrders {
    fn from(client: WorkerServiceClient) -> WorkerOrders {
        WorkerOrders(VersionedClient::V5(client))
    }
}
