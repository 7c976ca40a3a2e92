//! Fetches an object from the store of another node.

use std::io::ErrorKind;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use cohabit_application_core::{FetchFailure, NodeNumber, ObjectId};
use cohabit_memory::FreshMemory;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::runtime::Handle;
use tokio::task::{JoinSet, yield_now};
use tokio::time::timeout;

use super::connection::{NodeConnector, STALL};
use super::frames::{FetchReply, FetchRequest, read_frame, stalled, write_frame};
use crate::transport::LinkFailure;

/// An object of so many bytes comes over several connections.
const LARGE: u64 = 64 << 20;

/// So many.
const CONNECTIONS: u64 = 4;

/// What is received and written at once, in bytes: it stays in the caches of the processor.
const PIECE: usize = 256 << 10;

/// How long a connection may take to be opened.
const DIAL_LIMIT: Duration = Duration::from_secs(10);

/// An object on its way.
#[derive(Debug, Clone)]
pub(in crate::store) struct FetchedObject {
    /// The object.
    pub(in crate::store) object: ObjectId,
    /// Where it goes.
    pub(in crate::store) memory: Arc<FreshMemory>,
}

/// Fetches all bytes of an object, on these threads. Nothing goes on after an error, nor when the future is
/// dropped.
///
/// # Errors
/// If the other store does not give all of them.
pub(in crate::store) async fn pull(
    connector: &NodeConnector,
    source: NodeNumber,
    fetched: &FetchedObject,
    threads: &Handle,
) -> Result<(), FetchFailure> {
    let mut pulled = JoinSet::new();
    for part in parts(fetched.memory.bytes()) {
        let (connector, fetched) = (Arc::clone(connector), fetched.clone());
        let part = async move { pull_part(&connector, source, &fetched, part).await };
        pulled.spawn_on(part, threads);
    }
    let mut result = Ok(());
    while let Some(ended) = pulled.join_next().await {
        let ended = ended.unwrap_or_else(|error| Err(format!("the transfer has ended: {error}").into()));
        if ended.is_err() {
            pulled.abort_all();
        }
        result = result.and(ended);
    }
    result
}

/// The parts that come over one connection each.
fn parts(bytes: u64) -> Vec<Range<u64>> {
    let count = if bytes < LARGE { 1 } else { CONNECTIONS };
    let length = bytes.div_ceil(count);
    (0..count).map(|number| number * length..((number + 1) * length).min(bytes)).collect()
}

async fn pull_part(
    connector: &NodeConnector,
    source: NodeNumber,
    FetchedObject { object, memory }: &FetchedObject,
    part: Range<u64>,
) -> Result<(), FetchFailure> {
    let dialed = timeout(DIAL_LIMIT, connector(source)).await;
    let dialed = dialed.map_err(|_| format!("its store does not answer within {DIAL_LIMIT:?}"))?;
    let mut stream = dialed.map_err(|error| {
        // Processes of that node are not reached: it has no store.
        let is_away = error.kind() == ErrorKind::NotFound;
        if is_away { FetchFailure::Missing } else { format!("its store cannot be reached: {error}").into() }
    })?;
    let cut = |failure: LinkFailure| format!("the transfer from its store: {failure}");
    let (offset, length) = (part.start, part.end - part.start);
    let request = FetchRequest { object: *object, offset, length };
    let asked = async {
        write_frame(&mut stream, &request).await?;
        read_frame(&mut stream).await
    };
    let reply = timeout(STALL, asked).await.map_err(stalled).flatten().map_err(cut)?;
    match reply {
        FetchReply::Follows { bytes } if bytes == memory.bytes() => {}
        FetchReply::Follows { bytes } => {
            let stated = memory.bytes();
            let text = format!("its store has {bytes} bytes of object {object}, which has {stated}");
            return Err(FetchFailure::Failed(text));
        }
        FetchReply::Refused(failure) => return Err(failure),
    }
    Ok(receive(&mut stream, memory, part).await.map_err(cut)?)
}

/// Writes a part as it comes.
async fn receive(
    stream: &mut (impl AsyncRead + Unpin),
    memory: &FreshMemory,
    part: Range<u64>,
) -> Result<(), LinkFailure> {
    let mut place = part.start;
    let mut buffer = vec![0; PIECE];
    while place < part.end {
        let wanted = usize::try_from(part.end - place).unwrap_or(PIECE).min(PIECE);
        let piece = &mut buffer[..wanted];
        timeout(STALL, stream.read_exact(piece)).await.map_err(stalled)??;
        memory.write_at(place, piece).map_err(std::io::Error::other)?;
        place += wanted as u64;
        // The store has others to serve.
        yield_now().await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_objects_come_in_four_parts_without_gaps() {
        for bytes in [0, 1, LARGE - 1] {
            let parts = parts(bytes);
            assert_eq!((parts.len(), parts[0].start, parts[0].end), (1, 0, bytes));
        }
        for bytes in [LARGE, LARGE + 1, LARGE + 2, LARGE + 3, 3 * LARGE + 5] {
            let parts = parts(bytes);
            assert_eq!((parts.len(), parts[0].start, parts[3].end), (4, 0, bytes));
            assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start));
            assert!(parts.iter().all(|part| part.end > part.start));
        }
    }
}
