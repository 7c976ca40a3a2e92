//! Serves the stores of other nodes.

use std::rc::Rc;

use cohabit_application_core::FetchFailure;
use cohabit_memory::MemoryError;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::task::yield_now;
use tokio::time::timeout;

use super::connection::{ConnectionOpening, OpenedConnection, STALL};
use super::frames::{FetchReply, FetchRequest, read_frame, stalled, write_frame};
use super::serving_places::MOST_SERVED;
use super::threads::carry;
use crate::store::object_memory::ObjectSource;
use crate::store::server::{StoreServer, blocking};
use crate::transport::LinkFailure;

/// What is read and sent at once, in bytes: it stays in the caches of the processor.
const PIECE: usize = 256 << 10;

/// Serves a connection that another store has dialed, until it ends.
pub(in crate::store) async fn serve_fetches(server: Rc<StoreServer>, opening: ConnectionOpening) {
    let Some(_place) = server.serving.take().await else {
        tracing::warn!("closed a connection of another store: {MOST_SERVED} are served already");
        return;
    };
    let served = match timeout(STALL, opening).await {
        Ok(Ok(opened)) => serve(&server, opened).await,
        Ok(Err(error)) => Err(error.into()),
        Err(elapsed) => Err(stalled(elapsed)),
    };
    match served {
        Err(LinkFailure::Closed) | Ok(()) => {}
        Err(failure @ (LinkFailure::Broken(_) | LinkFailure::Protocol(_))) => {
            tracing::warn!(%failure, "cut the store of another node off");
        }
    }
}

/// Answers requests until the other end closes the connection.
async fn serve(server: &StoreServer, opened: OpenedConnection) -> Result<(), LinkFailure> {
    let (reading, mut writing) = split(opened.stream);
    let mut reading = opened.received.as_ref().chain(reading);
    loop {
        let request: FetchRequest = match timeout(STALL, read_frame(&mut reading)).await {
            Ok(Err(LinkFailure::Broken(error))) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                return Ok(());
            }
            Ok(request) => request?,
            Err(elapsed) => return Err(stalled(elapsed)),
        };
        match find(server, request) {
            Ok(source) => {
                let sending = async move {
                    let sent = send(&mut writing, &source, request).await;
                    (writing, sent)
                };
                let (returned, sent) = carry(server.transfer_threads.handle()?, sending).await?;
                writing = returned;
                sent?;
            }
            Err(failure) => {
                let reply = FetchReply::Refused(failure);
                let sent = timeout(STALL, write_frame(&mut writing, &reply)).await;
                sent.map_err(stalled)??;
            }
        }
    }
}

/// The object that a part is asked of.
///
/// # Errors
/// If it is not here or has no such part.
fn find(server: &StoreServer, request: FetchRequest) -> Result<ObjectSource, FetchFailure> {
    let FetchRequest { object, offset, length } = request;
    let source = server.source(object).ok_or(FetchFailure::Missing)?;
    let bytes = source.bytes();
    match offset.checked_add(length) {
        Some(end) if end <= bytes => Ok(source),
        Some(_) | None => Err(FetchFailure::Failed(format!(
            "object {object} has {bytes} bytes, and {length} from {offset} on reach beyond its end"
        ))),
    }
}

/// Sends the reply and the part. An error of the disk cannot be told any more: the connection ends.
async fn send(
    writing: &mut (impl AsyncWrite + Unpin),
    source: &ObjectSource,
    FetchRequest { offset, length, .. }: FetchRequest,
) -> Result<(), LinkFailure> {
    let reply = FetchReply::Follows { bytes: source.bytes() };
    timeout(STALL, write_frame(writing, &reply)).await.map_err(stalled)??;
    let (mut place, end) = (offset, offset + length);
    let mut piece = Vec::new();
    while place < end {
        piece.resize(usize::try_from(end - place).unwrap_or(PIECE).min(PIECE), 0);
        piece = source.read(place, piece).await.map_err(std::io::Error::other)?;
        timeout(STALL, writing.write_all(&piece)).await.map_err(stalled)??;
        place += piece.len() as u64;
        // The store has others to serve.
        yield_now().await;
    }
    Ok(timeout(STALL, writing.flush()).await.map_err(stalled)??)
}

impl ObjectSource {
    fn bytes(&self) -> u64 {
        match self {
            ObjectSource::Memory(memory) => memory.bytes(),
            ObjectSource::Disk(file) => file.bytes(),
        }
    }

    /// Fills the piece from this place on.
    async fn read(&self, place: u64, mut piece: Vec<u8>) -> Result<Vec<u8>, MemoryError> {
        match self {
            ObjectSource::Memory(memory) => memory.read_at(place, &mut piece).map(|()| piece),
            ObjectSource::Disk(file) => {
                let file = std::sync::Arc::clone(file);
                blocking(move || file.read_at(place, &mut piece).map(|()| piece)).await
            }
        }
    }
}
