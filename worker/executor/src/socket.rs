//! The executor's side of the connection to the daemon: sends the state of the rank, receives commands.
//!
//! There is one connection at a time; a new one replaces the one before.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use cohabit_host::format::JsonLine;
use cohabit_host::messages::{ExecutorCommand, ExecutorEvent};
use cohabit_types::{Progress, Time};
use cohabit_worker_core::Stopping;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::error_log::log_error;

/// How often the rank's progress is read, and sent if it has changed.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The state of a running rank, as daemons learn it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RankStatus {
    pub(crate) started_at: Time,
    /// The process id of the rank's first process.
    pub(crate) process: i32,
    /// How far its stop has got, if it is being stopped.
    pub(crate) stopping: Option<Stopping>,
    pub(crate) progress: Option<Progress>,
}

/// What the supervisor receives from the connection.
#[derive(Debug)]
pub(crate) enum DaemonMessage {
    Command(ExecutorCommand),
    /// The connection has ended.
    Disconnected,
}

/// How daemons reach the executor.
pub(crate) struct DaemonSockets {
    /// The connection to the daemon that assigned the rank.
    pub(crate) connection: UnixStream,
    /// Where later daemons connect.
    pub(crate) listener: Arc<UnixListener>,
}

/// Serves one daemon after the other until it is aborted.
pub(crate) async fn serve(
    sockets: DaemonSockets,
    status: watch::Receiver<RankStatus>,
    messages: mpsc::Sender<DaemonMessage>,
) {
    let DaemonSockets { connection, listener } = sockets;
    let mut current = JoinSet::new();
    current.spawn(serve_connection(connection, status.clone(), messages.clone()));
    while let Ok((stream, _)) = listener.accept().await {
        current.shutdown().await;
        current.spawn(serve_connection(stream, status.clone(), messages.clone()));
    }
}

async fn serve_connection(
    stream: UnixStream,
    status: watch::Receiver<RankStatus>,
    messages: mpsc::Sender<DaemonMessage>,
) {
    let (reading, writing) = stream.into_split();
    // Commands that arrived before the connection broke count, even if nothing can be sent any more.
    tokio::select! {
        () = receive_commands(reading, &messages) => {}
        () = async { send_events(writing, status).await; pending().await } => {}
    }
    // Without a supervisor the rank has ended.
    let _ = messages.send(DaemonMessage::Disconnected).await;
}

/// Returns at the end of the connection. Passes over commands of later versions.
async fn receive_commands(reading: OwnedReadHalf, messages: &mpsc::Sender<DaemonMessage>) {
    let mut lines = BufReader::new(reading).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        match ExecutorCommand::decode(&line) {
            Ok(command) if messages.send(DaemonMessage::Command(command)).await.is_err() => return,
            Ok(_) => {}
            Err(error) => log_error(&format!("unknown command: {error}")),
        }
    }
}

/// Sends everything once, then each change of the progress. Returns when the connection is closed.
async fn send_events(mut writing: OwnedWriteHalf, mut status: watch::Receiver<RankStatus>) {
    let mut events = {
        let status = status.borrow();
        let mut events = Vec::from_iter(status.stopping.map(ExecutorEvent::Stopping));
        events.extend([ExecutorEvent::Started(status.started_at), ExecutorEvent::Process(status.process)]);
        events
    };
    loop {
        events.extend(status.borrow_and_update().progress.clone().map(ExecutorEvent::Progress));
        for event in events.drain(..) {
            if writing.write_all(&event.encode()).await.is_err() {
                return;
            }
        }
        // Progress changes no more often than it is polled.
        sleep(POLL_INTERVAL).await;
        if status.changed().await.is_err() {
            return;
        }
    }
}
