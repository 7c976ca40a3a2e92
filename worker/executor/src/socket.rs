//! The executor's side of the connection to the daemon: sends the state of the rank, receives commands.
//!
//! There is one connection at a time; a new one replaces the one before.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use cohabit_host::format::JsonLine;
use cohabit_host::messages::{ExecutorCommand, ExecutorEvent};
use cohabit_host::records::OutcomeRecord;
use cohabit_types::{Progress, Time};
use cohabit_worker_core::Stopping;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::error_log::log_error;

/// How often the rank's progress is read, and sent if it has changed.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// How long a daemon may take to read that the rank has ended.
const TELL_TIMEOUT: Duration = Duration::from_secs(1);

/// The state of a rank, as daemons learn it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RankStatus {
    pub(crate) started_at: Time,
    /// The process id of the rank's first process.
    pub(crate) process: i32,
    /// How far its stop has got, if it is being stopped.
    pub(crate) stopping: Option<Stopping>,
    pub(crate) progress: Option<Progress>,
    /// How it ended, once that is written down.
    pub(crate) ended: Option<OutcomeRecord>,
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

/// Serves one daemon after the other until the end of the rank is told to the last one.
pub(crate) async fn serve(
    sockets: DaemonSockets,
    status: watch::Receiver<RankStatus>,
    messages: mpsc::Sender<DaemonMessage>,
) {
    let DaemonSockets { connection, listener } = sockets;
    let mut end = status.clone();
    let mut current = JoinSet::new();
    current.spawn(serve_connection(connection, status.clone(), messages.clone()));
    loop {
        tokio::select! {
            biased;
            () = has_ended(&mut end) => break,
            Ok((stream, _)) = listener.accept() => {
                current.shutdown().await;
                current.spawn(serve_connection(stream, status.clone(), messages.clone()));
            }
        }
    }
    // A daemon that does not read finds the outcome in the directory of the rank.
    let _ = timeout(TELL_TIMEOUT, current.join_next()).await;
}

async fn has_ended(status: &mut watch::Receiver<RankStatus>) {
    // Without a supervisor the rank has ended.
    let _ = status.wait_for(|status| status.ended.is_some()).await;
}

async fn serve_connection(
    stream: UnixStream,
    status: watch::Receiver<RankStatus>,
    messages: mpsc::Sender<DaemonMessage>,
) {
    let (reading, writing) = stream.into_split();
    tokio::select! {
        () = receive_commands(reading, &messages) => {}
        () = tell(writing, status) => {}
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

/// Returns when the end of the rank is sent.
async fn tell(writing: OwnedWriteHalf, status: watch::Receiver<RankStatus>) {
    if send_events(writing, status).await.is_err() {
        // Commands that arrived before the connection broke count, even if nothing can be sent any more.
        pending().await
    }
}

/// Sends everything once, then each change of the progress, and at last the end.
///
/// # Errors
/// When the connection is closed.
async fn send_events(mut writing: OwnedWriteHalf, mut status: watch::Receiver<RankStatus>) -> io::Result<()> {
    let mut events = {
        let status = status.borrow();
        let mut events = Vec::from_iter(status.stopping.map(ExecutorEvent::Stopping));
        events.extend([ExecutorEvent::Started(status.started_at), ExecutorEvent::Process(status.process)]);
        events
    };
    let mut told = None;
    loop {
        let RankStatus { progress, ended, .. } = status.borrow_and_update().clone();
        if progress != told {
            events.extend(progress.clone().map(ExecutorEvent::Progress));
            told = progress;
        }
        let is_over = ended.is_some();
        events.extend(ended.map(|ended| ExecutorEvent::Ended(Box::new(ended))));
        let lines: Vec<u8> = events.drain(..).flat_map(|event| event.encode()).collect();
        writing.write_all(&lines).await?;
        if is_over {
            return Ok(());
        }
        status.changed().await.map_err(io::Error::other)?;
    }
}
