//! The executor's end of the socket: tells each daemon that connects what is known, and hears its commands.
//!
//! There is one daemon at a time; a new connection takes the place of the one before.

use std::future::pending;
use std::sync::Arc;

use cohabit_types::{Progress, Time};
use cohabit_worker_core::Stopping;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::log_error;
use super::supervisor::POLL_INTERVAL;
use crate::wire::{ExecutorCommand, ExecutorEvent, line};

/// What a daemon may know of a rank that runs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RankStatus {
    pub(crate) started_at: Time,
    /// The rank's first process.
    pub(crate) process: i32,
    /// How far its stop is, if one has begun.
    pub(crate) stopping: Option<Stopping>,
    pub(crate) progress: Option<Progress>,
}

/// What comes over the socket.
#[derive(Debug)]
pub(crate) enum DaemonMessage {
    ExecutorCommand(ExecutorCommand),
    /// The connection is gone, and no other has taken its place.
    Disconnected,
}

/// How daemons are heard.
pub(crate) struct DaemonSockets {
    /// To the daemon that gave the rank.
    pub(crate) connection: UnixStream,
    /// Where those that come after it connect.
    pub(crate) listener: Arc<UnixListener>,
}

/// Serves one daemon after the other, for as long as there is somebody to hear them.
pub(crate) async fn serve(
    line: DaemonSockets,
    status: watch::Receiver<RankStatus>,
    hearer: mpsc::Sender<DaemonMessage>,
) {
    let DaemonSockets { connection, listener } = line;
    let mut present = JoinSet::new();
    present.spawn(serve_connection(connection, status.clone(), hearer.clone()));
    while let Ok((stream, _)) = listener.accept().await {
        present.shutdown().await;
        present.spawn(serve_connection(stream, status.clone(), hearer.clone()));
    }
}

async fn serve_connection(
    stream: UnixStream,
    status: watch::Receiver<RankStatus>,
    hearer: mpsc::Sender<DaemonMessage>,
) {
    let (reading, writing) = stream.into_split();
    // What was said before the connection ended counts, though there be nobody left to tell anything.
    tokio::select! {
        () = hear(reading, &hearer) => {}
        () = async { tell(writing, status).await; pending().await } => {}
    }
    // Without a holder the rank is over, and nobody needs to know.
    let _ = hearer.send(DaemonMessage::Disconnected).await;
}

/// Returns at the end of the connection. A command of a later version is passed over.
async fn hear(reading: OwnedReadHalf, hearer: &mpsc::Sender<DaemonMessage>) {
    let mut lines = BufReader::new(reading).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        match serde_json::from_str(&line) {
            Ok(command) if hearer.send(DaemonMessage::ExecutorCommand(command)).await.is_err() => return,
            Ok(_) => {}
            Err(error) => log_error(&format!("a command makes no sense: {error}")),
        }
    }
}

/// Says everything once, then each change of the progress. Returns when there is nobody to tell it to.
async fn tell(mut writing: OwnedWriteHalf, mut status: watch::Receiver<RankStatus>) {
    let mut words = {
        let status = status.borrow();
        let mut words = Vec::from_iter(status.stopping.map(ExecutorEvent::Stopping));
        words.extend([ExecutorEvent::Started(status.started_at), ExecutorEvent::Process(status.process)]);
        words
    };
    loop {
        words.extend(status.borrow_and_update().progress.clone().map(ExecutorEvent::Progress));
        for word in words.drain(..) {
            if writing.write_all(&line(&word)).await.is_err() {
                return;
            }
        }
        // No more often than it is of use.
        sleep(POLL_INTERVAL).await;
        if status.changed().await.is_err() {
            return;
        }
    }
}
