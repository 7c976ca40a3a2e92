//! Answers requests for what ranks printed: from their files, whether they run or ended long ago.

use std::time::Duration;

use cohabit_types::{FollowMode, LogChunk, LogRequest, Refusal, RefusalCode};
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout};

use super::state::StateDirectory;
use crate::log::LogDirectory;
use crate::rank_folder::RankDirectory;

/// How long a request waits for more to be printed.
const LONG_POLL: Duration = Duration::from_secs(15);

/// After what pause it is first looked whether more was printed; the pause doubles while nothing comes.
const FIRST_LOOK: Duration = Duration::from_millis(4);

/// The longest pause.
const LAST_LOOK: Duration = Duration::from_millis(128);

/// A piece of a rank's output; at its end, waits for more if it is to.
pub(crate) async fn read(state: &StateDirectory, request: LogRequest) -> Result<LogChunk, Refusal> {
    let folder = RankDirectory::of(&state.ranks(), request.rank);
    if !folder.path().is_dir() {
        let message = format!("the output of {} is not kept on this worker any more", request.rank);
        return Err(Refusal::new(RefusalCode::NotFound, message));
    }
    let deadline = Instant::now() + LONG_POLL;
    let mut ends = state.ends();
    loop {
        let extent = extent(&folder).await?;
        let chunk = read_now(&folder, request).await?;
        let waits = chunk.records.is_empty() && !chunk.complete && request.at_end == FollowMode::Wait;
        if !waits || !grows(&folder, extent, deadline, &mut ends).await? {
            return Ok(chunk);
        }
    }
}

/// Where the log ends on disk, and whether the rank is over.
type Extent = ((u64, u64), bool);

/// Whether there is more to read, or the rank has ended, before the deadline.
async fn grows(
    folder: &RankDirectory,
    seen: Extent,
    deadline: Instant,
    ends: &mut watch::Receiver<()>,
) -> Result<bool, Refusal> {
    let mut pause = FIRST_LOOK;
    while Instant::now() < deadline {
        if extent(folder).await? != seen {
            return Ok(true);
        }
        // The end of the rank is worth a look at once.
        let _ = timeout(pause, ends.changed()).await;
        pause = (pause * 2).min(LAST_LOOK);
    }
    Ok(false)
}

async fn extent(folder: &RankDirectory) -> Result<Extent, Refusal> {
    let folder = folder.clone();
    blocking(move || Ok((LogDirectory::new(folder.log()).extent()?, folder.is_over()))).await
}

/// Whether the rank is over is looked up first: what is printed later than that does not exist.
async fn read_now(folder: &RankDirectory, request: LogRequest) -> Result<LogChunk, Refusal> {
    let folder = folder.clone();
    blocking(move || {
        let over = folder.is_over();
        let chunk = LogDirectory::new(folder.log()).read(request.from)?;
        Ok(LogChunk { complete: chunk.complete && over, ..chunk })
    })
    .await
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, Refusal> {
    let done = spawn_blocking(work).await.unwrap_or_else(|panic| Err(panic.into()));
    done.map_err(|error| {
        Refusal::new(RefusalCode::Internal, format!("the worker cannot read the output: {error}"))
    })
}
